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
    mutating func take(_ input: inout UnsafeRawBufferPointer, limits: HTTPLimits) throws(HTTPFailure) -> Bool {
        var index = 0
        defer { input = .init(rebasing: input[index...]) }
        while index < input.count {
            let byte: UInt8 = input[index]
            index += 1
            if try take(byte, limits: limits) { return true }
        }
        return false
    }

    private mutating func take(_ byte: UInt8, limits: HTTPLimits) throws(HTTPFailure) -> Bool {
        let last = previous
        previous = byte
        if byte == 0x0A {
            guard last == 0x0D else { throw HTTPFailure(.bareLineFeed) }
            return endLine()
        }
        if last == 0x0D { throw HTTPFailure(.bareCarriageReturn) }
        if byte == 0x0D {
            // One empty line before the request line is ignored (RFC 9112, 2.2); a second one is refused.
            if bytes.isEmpty && skippedEmptyLine { throw HTTPFailure(.badRequestLine) }
            return false
        }
        guard byte >= 0x20 && byte != 0x7F || byte == 0x09 else { throw HTTPFailure(.controlByte) }
        guard bytes.count - lineStart < limits.lineBytesMax else { throw HTTPFailure(.headTooLong) }
        // The first line does not count as a field.
        guard lineEnds.count <= limits.fieldsMax else { throw HTTPFailure(.tooManyFields) }
        guard bytes.count + 2 * (lineEnds.count + 2) < limits.headBytesMax else { throw HTTPFailure(.headTooLong) }
        guard !lineEnds.isEmpty || bytes.count < limits.targetBytesMax + Self.aroundTargetMax else {
            throw HTTPFailure(.targetTooLong)
        }
        bytes.append(byte)
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
