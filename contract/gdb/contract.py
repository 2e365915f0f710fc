# What the steady-state contract knows, from a core file or a stopped process:
#
#     gdb --batch -x contract/gdb/contract.py -ex tripoint-contract PROGRAM CORE
#
# For every registered thread: the alarms of each class, and the last records of its two
# rings, drained or not, in the order they were made, with their stacks. It finds them
# without debug information (design/contract.md `.core`); with some, addresses become lines.
import struct

import gdb

MAGIC = b"tripointcontract"
VERSION = 2

# In the order of their indices: contract/tests/core_file.rs compares.
CLASSES = [
    "alloc",
    "realloc",
    "dealloc",
    "fill",
    "growth",
    "memory_call",
    "minor_fault",
    "major_fault",
    "foreign_malloc",
    "collection",
    "pause",
    "wait",
    "amnesty_overrun",
]
KINDS = ["violation", "excused", "rehearsed", "alarm"]

# The words after the magic, in their order (contract/src/thread/layout.rs).
FIELDS = [
    "version",
    "last_slot",
    "slot_before",
    "slot_state",
    "slot_alarms",
    "slot_name",
    "slot_name_size",
    "slot_accounts",
    "account_size",
    "classes",
    "account_alarm_version",
    "account_alarm_words",
    "slot_own",
    "slot_supervised",
    "ring_cells",
    "ring_tail",
    "ring_lost",
    "ring_records",
    "record_words",
    "frames",
]
# A record's words before its frames.
HEAD = [
    "kind",
    "class",
    "thread",
    "serial",
    "count",
    "bytes",
    "address",
    "call",
    "time_low",
    "time_high",
    "reason",
    "allowed_low",
    "allowed_high",
    "taken_low",
    "taken_high",
]


class Memory:
    def __init__(self):
        self.inferior = gdb.selected_inferior()
        self.word = gdb.lookup_type("long").sizeof
        self.format = "=Q" if self.word == 8 else "=I"

    def words(self, address, count):
        data = bytes(self.inferior.read_memory(address, count * self.word))
        return [value for (value,) in struct.iter_unpack(self.format, data)]

    def text(self, address, size):
        return bytes(self.inferior.read_memory(address, size)).decode("utf-8", "replace")

    def ranges(self):
        """Memory that may hold data: of a core its segments, of a process its mappings."""
        for line in gdb.execute("maint info sections", to_string=True).splitlines():
            parts = line.replace("->", " ").split()
            numbers = [part for part in parts if part.startswith("0x")]
            if "ALLOC" in line and len(numbers) >= 2:
                yield int(numbers[0], 16), int(numbers[1], 16)
        if any(thread.is_valid() for thread in self.inferior.threads()):
            try:
                mappings = gdb.execute("info proc mappings", to_string=True)
            except gdb.error:
                return
            for line in mappings.splitlines():
                parts = line.split()
                if len(parts) >= 4 and parts[0].startswith("0x"):
                    yield int(parts[0], 16), int(parts[1], 16)

    def find_layouts(self):
        found = set()
        for start, end in self.ranges():
            while start < end:
                try:
                    hit = self.inferior.search_memory(start, end - start, MAGIC)
                except (gdb.error, gdb.MemoryError):
                    break
                if hit is None:
                    break
                found.add(hit)
                start = hit + 1
        for address in sorted(found):
            try:
                layout = dict(zip(FIELDS, self.words(address + len(MAGIC), len(FIELDS))))
            except gdb.MemoryError:
                continue
            if layout["version"] == VERSION and layout["classes"] == len(CLASSES):
                yield layout


def place(address):
    """A return address as a line, as far as gdb knows."""
    before = address - 1
    symbol = gdb.execute(f"info symbol {before:#x}", to_string=True).strip()
    name = "?" if symbol.startswith("No symbol") else symbol.split(" in section")[0]
    line = gdb.find_pc_line(before)
    where = f" at {line.symtab.filename}:{line.line}" if line.symtab else ""
    return f"{address:#x} {name}{where}"


def tell(words, kind=None):
    record = dict(zip(HEAD, words))
    name = CLASSES[record["class"]] if record["class"] < len(CLASSES) else "?"
    time, allowed, taken = (record[f"{name}_high"] << 32 | record[f"{name}_low"] for name in ("time", "allowed", "taken"))
    kind = kind or KINDS[min(record["kind"], len(KINDS) - 1)]
    address = f"address {record['address']:#x}, " if record["address"] else ""
    call = f"call {record['call']}, " if record["call"] else ""
    limit = "any time" if allowed == 2**64 - 1 else f"{allowed} ns"
    step = f"a step that was allowed {limit} and took {taken} ns, " if taken else ""
    print(f"  {kind}: {name} x{record['count']}, {record['bytes']} bytes, {address}{call}{step}at {time} ns")
    for address in words[len(HEAD) :]:
        if address == 0:
            break
        print(f"    {place(address)}")


def tell_slot(memory, layout, slot):
    size = memory.words(slot + layout["slot_name_size"], 1)[0]
    name = memory.text(slot + layout["slot_name"], min(size, 32))
    alarms = memory.words(slot + layout["slot_alarms"], 1)[0]
    state = memory.words(slot + layout["slot_state"], 1)[0]
    rings = [slot + layout["slot_own"], slot + layout["slot_supervised"]]
    lost = sum(memory.words(ring + layout["ring_lost"], 1)[0] for ring in rings)
    left = "" if state == 2 else " (gone)"
    print(f"thread {name}{left}: {alarms} alarms, {lost} records lost")
    for index in range(layout["classes"]):
        account = slot + layout["slot_accounts"] + index * layout["account_size"]
        if memory.words(account + layout["account_alarm_version"], 1)[0] > 0:
            words = memory.words(account + layout["account_alarm_words"], layout["record_words"])
            tell(words, "alarms in all, and the last one's place")
    records = []
    for ring in rings:
        tail = memory.words(ring + layout["ring_tail"], 1)[0]
        for number in range(max(0, tail - layout["ring_records"]), tail):
            cell = number % layout["ring_records"] * layout["record_words"] * memory.word
            records.append(memory.words(ring + layout["ring_cells"] + cell, layout["record_words"]))
    for words in sorted(records, key=lambda words: words[HEAD.index("serial")]):
        tell(words)


class TripointContract(gdb.Command):
    """Prints the alarms and records of every thread that a tripoint contract knows."""

    def __init__(self):
        super().__init__("tripoint-contract", gdb.COMMAND_DATA)

    def invoke(self, _argument, _from_tty):
        memory = Memory()
        seen = set()
        for layout in memory.find_layouts():
            slot = layout["last_slot"]
            while slot != 0 and slot not in seen:
                seen.add(slot)
                tell_slot(memory, layout, slot)
                slot = memory.words(slot + layout["slot_before"], 1)[0]
        if not seen:
            print("no thread ever registered with a tripoint contract here")


TripointContract()
