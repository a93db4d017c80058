/// Collects the lines of a head up to the empty line, and refuses at the earliest byte input that cannot become a head.
///
/// Lines must end with CR LF. A lone LF or CR makes two parsers see two different messages in the same bytes (request
/// smuggling), so both are refused rather than repaired.
struct HTTPHeadReader {
    private(set) var bytes = [UInt8]()
    private var lineEnds = [Int]()
    private var lineStart = 0
    private var previous: UInt8 = 0
    private var skippedEmptyLine = false

    /// Whether a byte of a head has arrived.
    var isStarted: Bool { !bytes.isEmpty || previous != 0 }

    /// Consumes input up to and including the empty line.
    ///
    /// - Returns: whether the head is complete; its lines are then in `lines`.
    mutating func consume(_ input: inout UnsafeRawBufferPointer, limits: HTTPLimits) throws(HTTPFailure) -> Bool {
        var index = 0
        defer { input = .init(rebasing: input[index...]) }
        while index < input.count {
            let end = Self.endOfText(input, from: index)
            if end > index {
                if previous == 0x0D { throw HTTPFailure(.bareCarriageReturn) }
                try append(.init(rebasing: input[index..<end]), limits)
                index = end
            } else {
                index += 1
                if try consumeControl(input[index - 1]) { return true }
            }
        }
        return false
    }

    /// Index of the next byte that ends a line or is refused: the text before it is copied at once.
    private static func endOfText(_ input: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index < input.count {
            if index + 8 <= input.count, !hasControl(input.loadUnaligned(fromByteOffset: index, as: UInt64.self)) {
                index += 8
            } else if isText(input[index]) {
                index += 1
            } else {
                break
            }
        }
        return index
    }

    private static func isText(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7F || byte == 0x09 }

    /// Whether one of eight bytes may be a control byte: below 0x20, or 0x7F. Never false for one that is.
    private static func hasControl(_ bytes: UInt64) -> Bool {
        let deletes = bytes ^ 0x7F7F_7F7F_7F7F_7F7F
        let below = (bytes &- 0x2020_2020_2020_2020) & ~bytes
        return (below | (deletes &- 0x0101_0101_0101_0101) & ~deletes) & 0x8080_8080_8080_8080 != 0
    }

    /// Appends text of one line. A line that breaks several limits is refused for the one that it meets first.
    private mutating func append(_ text: UnsafeRawBufferPointer, _ limits: HTTPLimits) throws(HTTPFailure) {
        let line = limits.lineBytesMax - (bytes.count - lineStart)
        // The first line does not count as a field.
        let field = lineEnds.count <= limits.fieldsMax ? Int.max : 0
        let head = limits.headBytesMax - 2 * (lineEnds.count + 2) - bytes.count
        let target = lineEnds.isEmpty ? limits.targetBytesMax + Self.aroundTargetMax - bytes.count : Int.max
        let room = min(line, field, head, target)
        guard text.count <= max(0, room) else {
            let problem: HTTPFailure.Problem =
                line == room
                ? .headTooLong : field == room ? .tooManyFields : head == room ? .headTooLong : .targetTooLong
            throw HTTPFailure(problem)
        }
        bytes.append(contentsOf: text)
        previous = text[text.count - 1]
    }

    /// Consumes a byte that is not text.
    /// - Returns: whether it ends the head.
    private mutating func consumeControl(_ byte: UInt8) throws(HTTPFailure) -> Bool {
        let last = previous
        previous = byte
        if byte == 0x0A {
            guard last == 0x0D else { throw HTTPFailure(.bareLineFeed) }
            return endLine()
        }
        guard last != 0x0D else { throw HTTPFailure(.bareCarriageReturn) }
        guard byte == 0x0D else { throw HTTPFailure(.controlByte) }
        // One empty line before the request line is ignored (RFC 9112, 2.2); a second one is refused.
        if bytes.isEmpty && skippedEmptyLine { throw HTTPFailure(.badRequestLine) }
        return false
    }

    /// Bytes of a first line besides the target, with a margin: a method or version, and spaces.
    private static let aroundTargetMax = 40

    private mutating func endLine() -> Bool {
        guard !bytes.isEmpty else {
            skippedEmptyLine = true
            previous = 0
            return false
        }
        if bytes.count == lineStart { return true }
        lineEnds.append(bytes.count)
        lineStart = bytes.count
        return false
    }

    /// The lines of the head without their line ends.
    var lines: [ArraySlice<UInt8>] {
        var start = 0
        return lineEnds.map { end in
            defer { start = end }
            return bytes[start..<end]
        }
    }
}
