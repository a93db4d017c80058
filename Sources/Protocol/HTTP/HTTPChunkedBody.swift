import ThicketPlatform
/// Joins the chunks of a body (RFC 9112, 7.1). Extensions and trailers are checked, counted and dropped.
struct HTTPChunkedBody {
    private enum State {
        case size
        case data(Int)
        case dataEnd, trailer
    }

    private var state = State.size
    private var line = [UInt8]()
    private var sawCarriageReturn = false
    private var trailerBytes = 0

    /// Consumes input up to the end of the body.
    ///
    /// - Returns: whether the body is complete.
    mutating func consume(
        _ input: inout UnsafeRawBufferPointer, into body: inout [UInt8], limits: HTTPLimits
    ) throws(HTTPFailure) -> Bool {
        while !input.isEmpty {
            if case .data(let missing) = state {
                let taken = min(missing, input.count)
                body.append(contentsOf: input[..<taken])
                input = .init(rebasing: input[taken...])
                state = taken == missing ? .dataEnd : .data(missing - taken)
                continue
            }
            let byte: UInt8 = input[0]
            input = .init(rebasing: input[1...])
            guard try endsLine(byte, limits: limits) else { continue }
            let complete = line[...]
            line = []
            if try consume(line: complete, bodyCount: body.count, limits: limits) { return true }
        }
        return false
    }

    /// Adds a byte to the current line. Returns true if the byte ended the line.
    private mutating func endsLine(_ byte: UInt8, limits: HTTPLimits) throws(HTTPFailure) -> Bool {
        if byte == 0x0A {
            guard sawCarriageReturn else { throw HTTPFailure(.bareLineFeed) }
            sawCarriageReturn = false
            return true
        }
        guard !sawCarriageReturn else { throw HTTPFailure(.bareCarriageReturn) }
        if byte == 0x0D {
            sawCarriageReturn = true
            return false
        }
        guard HTTPText.isFieldContent(byte) else { throw HTTPFailure(.controlByte) }
        if case .dataEnd = state { throw HTTPFailure(.badChunk) }
        if case .trailer = state {
            trailerBytes += 1
            guard trailerBytes <= limits.trailerBytesMax else { throw HTTPFailure(.headTooLong) }
        } else {
            guard line.count < limits.chunkLineBytesMax else { throw HTTPFailure(.chunkLineTooLong) }
        }
        line.append(byte)
        return false
    }

    /// Processes a whole line. Returns true if it was the last line of the body.
    private mutating func consume(
        line: ArraySlice<UInt8>, bodyCount: Int, limits: HTTPLimits
    ) throws(HTTPFailure) -> Bool {
        switch state {
        case .size:
            let size = try Self.size(line)
            guard size <= limits.bodyBytesMax - bodyCount else { throw HTTPFailure(.bodyTooLong) }
            state = size == 0 ? .trailer : .data(size)
        case .dataEnd:
            state = .size
        case .trailer:
            if line.isEmpty { return true }
            _ = try HTTPFields.field(line)
            // The line end counts too; otherwise very short trailers would pass the bound in any number.
            trailerBytes += 2
        case .data: break
        }
        return false
    }

    /// Digits of a chunk's size at most; no body within the limits needs more.
    private static let sizeDigitsMax = 12

    private static func size(_ line: ArraySlice<UInt8>) throws(HTTPFailure) -> Int {
        var size = 0
        var digits = 0
        for byte in line {
            guard let value = Hex.value(byte).map(Int.init) else {
                guard byte == UInt8(ascii: ";") && digits > 0 else { throw HTTPFailure(.badChunk) }
                return size
            }
            digits += 1
            guard digits <= sizeDigitsMax else { throw HTTPFailure(.badChunk) }
            size = size << 4 | value
        }
        guard digits > 0 else { throw HTTPFailure(.badChunk) }
        return size
    }
}
