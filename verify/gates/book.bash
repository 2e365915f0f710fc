# Shared by the gates: how to find or build the book, and how many messages take how long.
# Sourced, in the repository's root, by a gate that was started in $started_in.

# Prints a path as it is from the root, or nothing if there is none. Arguments: the path as it
# is from where the gate was started.
from_start() {
    [ -z "$1" ] || (cd "$started_in" && realpath --canonicalize-missing -- "$1")
}

# The program: BOOK, or the order book built anew. What comes after `--` is for it.
build_book() {
    book=$(from_start "${BOOK-}")
    if [ -z "$book" ]; then
        "${CARGO:-cargo}" build --quiet --release -p order-book
        book=${CARGO_TARGET_DIR:-target}/release/order-book
    fi
}

# Checks that an option has a number. Arguments: the option, and what followed it.
number() {
    [[ ${2-} =~ ^[1-9][0-9]*$ ]] || { echo "$1 wants a number above 0, not '${2-}'" >&2 && exit 2; }
}

# Prints how many messages take about that long here. Arguments: the seconds, options of
# the book.
messages_for() {
    local begin probe=20000
    begin=$(date +%s%N)
    "$book" --messages "$probe" "${@:2}" > /dev/null
    echo $((probe * $1 * 1000 / (($(date +%s%N) - begin) / 1000000)))
}

# The one line that repeats the run. Arguments: options of the book.
reproduce() {
    printf '  again: cargo run --release -p order-book --'
    printf ' %q' "$@"
    printf '\n'
}
