/// Checks a text and fills the tape in one pass. Nesting takes no stack: while a container is open, its second tape
/// word holds the index of the container around it.
///
/// Works on raw pointers, so that debug builds are fast too. Every read is preceded by a comparison with `count`, every
/// write by one with `capacity`; a full tape is replaced by a longer one. A value takes at most one word more than it
/// has bytes, and only while it is open, so the size of the tape is proportional to that of the text.
struct JSONScanner {
    let base: UnsafePointer<UInt8>
    let count: Int
    private(set) var tape: UnsafeMutablePointer<UInt64>
    /// Capacity of `tape`, in words.
    private var capacity: Int
    let maxDepth: Int
    /// Elements of the outermost array at most.
    let elementsMax: Int
    /// Whether the scanner allocated the tape; `release` frees it then.
    private var ownsTape = false

    var position = 0
    /// Words written so far.
    var tapeCount = 0
    /// Tape index of the innermost open container, -1 outside all containers.
    private var container = -1
    private var depth = 0

    /// - Parameters:
    ///   - tape: the caller's memory to start with, enough for most messages.
    ///   - capacity: its size in words.
    init(
        base: UnsafePointer<UInt8>, count: Int, tape: UnsafeMutablePointer<UInt64>, capacity: Int, maxDepth: Int,
        elementsMax: Int
    ) {
        self.base = base
        self.count = count
        self.tape = tape
        self.capacity = capacity
        self.maxDepth = maxDepth
        self.elementsMax = elementsMax
    }

    /// Frees a tape that the scanner allocated.
    mutating func release() {
        if ownsTape { tape.deallocate() }
        ownsTape = false
    }

    /// Continues with a tape that is twice as long, or as long as texts of this length usually need.
    @inline(never)
    private mutating func lengthen() {
        let longer = max(capacity * 2, count / 8)
        let made = UnsafeMutablePointer<UInt64>.allocate(capacity: longer)
        made.initialize(from: tape, count: tapeCount)
        release()
        (tape, capacity, ownsTape) = (made, longer, true)
    }

    /// Reads one value, and requires that only white space surrounds it.
    mutating func run() throws(JSONError) {
        repeat { try scanValue() } while try scanAfterValue()
        skipSpace()
        guard position == count else { throw JSONError(.trailingBytes, at: position) }
    }

    /// Reads a scalar or an empty container, after opening the containers before it.
    @inline(__always)
    private mutating func scanValue() throws(JSONError) {
        while true {
            skipSpace()
            guard position < count else { throw JSONError(.unexpectedEnd, at: count) }
            switch base[position] {
            case UInt8(ascii: "\""):
                put(try scanString())
                return
            case UInt8(ascii: "{"):
                try open(JSONTape.Kind.object)
                guard try isFilled(closedBy: UInt8(ascii: "}")) else { return }
                try scanKey()
            case UInt8(ascii: "["):
                try open(JSONTape.Kind.array)
                guard try isFilled(closedBy: UInt8(ascii: "]")) else { return }
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                let end = try Self.numberEnd(base, from: position, count: count)
                put(JSONTape.word(JSONTape.Kind.number, offset: position, length: end - position))
                position = end
                return
            case UInt8(ascii: "t"):
                try scanLiteral("true", JSONTape.Kind.truth)
                return
            case UInt8(ascii: "f"):
                try scanLiteral("false", JSONTape.Kind.falsehood)
                return
            case UInt8(ascii: "n"):
                try scanLiteral("null", JSONTape.Kind.null)
                return
            default:
                throw JSONError(.unexpectedByte, at: position)
            }
        }
    }

    /// Reads commas and closing brackets after a complete value.
    ///
    /// - Returns: true when another value must follow, false when the outermost value is complete.
    @inline(__always)
    private mutating func scanAfterValue() throws(JSONError) -> Bool {
        while container >= 0 {
            tape[container + 1] &+= 1 << 32
            skipSpace()
            guard position < count else { throw JSONError(.unexpectedEnd, at: count) }
            let isObject = JSONTape.kind(tape[container]) == JSONTape.Kind.object
            let byte = base[position]
            if byte == UInt8(ascii: ",") {
                if isObject {
                    position += 1
                    skipSpace()
                    try scanKey()
                    return true
                }
                guard depth > 1 || JSONTape.count(tape[container + 1]) < elementsMax else {
                    throw JSONError(.tooManyElements, at: position)
                }
                position += 1
                return true
            }
            guard byte == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                throw JSONError(.unexpectedByte, at: position)
            }
            position += 1
            if isObject { try JSONKeyCheck.run(base, tape, object: container, end: tapeCount) }
            close()
        }
        return false
    }

    @inline(__always)
    private mutating func put(_ word: UInt64) {
        if tapeCount == capacity { lengthen() }
        tape[tapeCount] = word
        tapeCount += 1
    }

    private mutating func open(_ kind: UInt64) throws(JSONError) {
        guard depth < maxDepth else { throw JSONError(.tooDeep, at: position) }
        depth += 1
        put(JSONTape.word(kind, offset: position, length: 0))
        put(UInt64(container + 1))
        container = tapeCount - 2
        position += 1
    }

    /// Looks at the byte after an opening bracket, and closes a container that is empty.
    private mutating func isFilled(closedBy bracket: UInt8) throws(JSONError) -> Bool {
        skipSpace()
        guard position < count else { throw JSONError(.unexpectedEnd, at: count) }
        guard base[position] == bracket else { return true }
        position += 1
        close()
        return false
    }

    /// Completes the innermost container, whose closing bracket has been read.
    @inline(__always)
    private mutating func close() {
        let second = tape[container + 1]
        tape[container] |= UInt64(position - JSONTape.offset(tape[container])) << 30
        tape[container + 1] = second & ~0xFFFF_FFFF | UInt64(tapeCount)
        container = JSONTape.end(second) - 1
        depth -= 1
    }

    @inline(__always)
    private mutating func scanKey() throws(JSONError) {
        guard position < count else { throw JSONError(.unexpectedEnd, at: count) }
        guard base[position] == UInt8(ascii: "\"") else { throw JSONError(.unexpectedByte, at: position) }
        put(try scanString())
        skipSpace()
        guard position < count else { throw JSONError(.unexpectedEnd, at: count) }
        guard base[position] == UInt8(ascii: ":") else { throw JSONError(.unexpectedByte, at: position) }
        position += 1
    }

    @inline(__always)
    private mutating func skipSpace() {
        while position < count {
            let byte = base[position]
            if byte > 0x20 { return }
            guard byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { return }
            position += 1
        }
    }

    private mutating func scanLiteral(_ literal: StaticString, _ kind: UInt64) throws(JSONError) {
        let start = position
        for place in 0..<literal.utf8CodeUnitCount {
            guard position < count else { throw JSONError(.unexpectedEnd, at: count) }
            guard base[position] == literal.utf8Start[place] else { throw JSONError(.unexpectedByte, at: position) }
            position += 1
        }
        put(JSONTape.word(kind, offset: start, length: position - start))
    }
}

extension JSONScanner {
    /// Checks the number that begins at `start` (RFC 8259, section 6).
    ///
    /// - Returns: the offset after its last byte; the caller checks what follows.
    @inline(__always)
    static func numberEnd(_ base: UnsafePointer<UInt8>, from start: Int, count: Int) throws(JSONError) -> Int {
        var at = start
        if at < count, base[at] == UInt8(ascii: "-") { at += 1 }
        if at < count, base[at] == UInt8(ascii: "0") {
            at += 1
            if at < count, base[at] &- 0x30 < 10 { throw JSONError(.invalidNumber, at: at) }
        } else {
            at = try digitsEnd(base, from: at, count: count)
        }
        if at < count, base[at] == UInt8(ascii: ".") { at = try digitsEnd(base, from: at + 1, count: count) }
        if at < count, base[at] | 0x20 == UInt8(ascii: "e") {
            at += 1
            if at < count, base[at] == UInt8(ascii: "+") || base[at] == UInt8(ascii: "-") { at += 1 }
            at = try digitsEnd(base, from: at, count: count)
        }
        return at
    }

    /// Reads one digit or more.
    @inline(__always)
    private static func digitsEnd(
        _ base: UnsafePointer<UInt8>, from start: Int, count: Int
    ) throws(JSONError) -> Int {
        var at = start
        while at < count, base[at] &- 0x30 < 10 { at += 1 }
        guard at > start else { throw JSONError(at < count ? .invalidNumber : .unexpectedEnd, at: at) }
        return at
    }
}
