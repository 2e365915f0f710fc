# What makes and boots an emulated machine whose only program is one of ours (verify/numa, verify/zero-copy). A script sets
# `name`, of itself and of its folder here, and `patience`, the most seconds that the machine may run; then it reads this file
# from the top of the repository. As root on Debian on x86-64.

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/$name
host=x86_64-unknown-linux-gnu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Installs a package, unless its command is there.
need() {
    command -v "$1" >/dev/null && return
    [ -n "${updated:-}" ] || apt-get update -qq
    updated=yes
    apt-get install -y -qq --no-install-recommends --no-upgrade "$2" >/dev/null
}

# Has apt, in what follows, know the packages of another release of Debian, from where those of this one are. What is
# installed is left alone.
use_release() {
    mkdir -p "$work/lists/partial"
    local site
    site=$(apt-get indextargets --format '$(SITE)' 'Label: Debian' 'Created-By: Packages' | head -n 1)
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $1 main" >"$work/sources.list"
    release=(-o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$work/lists"
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)
}

# The newest kernel that a package names, with some of its modules, as it is in packages. A second argument is the release.
fetch_kernel() {
    kernel=$target/vmlinuz
    [ -e "$kernel" ] && return
    local release=() package parts
    [ -z "$2" ] || use_release "$2"
    apt-get "${release[@]}" update -qq
    newest() { apt-cache "${release[@]}" depends "$1" | awk -v name="$2" '$1 == "Depends:" && $2 ~ name { print $2 }'; }
    package=$(newest "$1" '^linux-image-[0-9]' | head -n 1)
    # In newer releases the kernel and its modules have packages of their own.
    mapfile -t parts < <(newest "$package" '^linux-(binary|modules)-[0-9]')
    (cd "$work" && apt-get "${release[@]}" download -qq "$package" "${parts[@]}" 2>/dev/null &&
        for file in ./*.deb; do dpkg -x "$file" unpacked; done)
    mkdir -p "$target"
    for module in "${@:3}"; do
        find "$work/unpacked" -name "$module.ko.xz" -exec cp {} "$target" \;
    done
    cp "$(find "$work/unpacked" -name 'vmlinuz*' | head -n 1)" "$kernel"
}

# Builds the program, and what the machine has in memory when it begins: the program and some modules of the kernel.
build_program() {
    CARGO_TARGET_DIR=$target RUSTFLAGS="-C target-feature=+crt-static" \
        cargo build --quiet --release --target "$host" --manifest-path "verify/programs/$name/Cargo.toml"
    mkdir "$work/root"
    cp "$target/$host/release/$1" "$work/root/init"
    for module in "${@:2}"; do
        cp "$target/$module.ko.xz" "$work/root"
    done
    (cd "$work/root" && find . -mindepth 1 | cpio --quiet -o -H newc >../initramfs)
}

# Boots it, with options for its kernel, and with more of the machine as arguments. The kernel does not look whether its timer
# comes in time, which it may not if this machine is busy.
#
# Its processors take turns. If each had a thread, QEMU before 8.1 could run code that the kernel has replaced: it reads code
# before it watches for writes to it. Then the kernel ends in an `int3` that it has put there and taken away, or does not boot.
boot() {
    timeout "$patience" qemu-system-x86_64 -M q35 -accel tcg,thread=single -cpu max -kernel "$kernel" -initrd "$work/initramfs" \
        -append "console=ttyS0 quiet panic=-1 no_timer_check $1" "${@:2}" -display none -no-reboot -serial "file:$work/console" -monitor none </dev/null ||
        echo "the machine ended with $?" >&2
}

# Prints the lines of the program, which begin with a word, and fails unless the last says that all held.
say_whether_all_held() {
    tr -d '\r' <"$work/console" | grep "^$1: " || true
    tr -d '\r' <"$work/console" | grep -qx "$1: all held" && return
    tail -n 40 "$work/console" >&2
    return 1
}

need qemu-system-x86_64 qemu-system-x86
need cpio cpio
