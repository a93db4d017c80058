internal import CZlib

/// Looks into what is deflated, wherever it begins: in raw streams, and in zlib's and gzip's, which hold a raw one.
public enum Inflated {
    /// Bytes that one place may give. More is not looked at.
    public static let streamBytesMax: Int = 1 << 20
    /// Bytes that are worth a look: a canary is not shorter than eight.
    private static let streamBytesMin: Int = 8

    /// What every place of `bytes` gives when a deflated stream is taken to begin there, one behind another with zeros
    /// between. Most places begin none and give nothing, or some bytes before that shows.
    ///
    /// Blocks that refer to what stood before the place cannot be read; protocols that send such (permessage-deflate with
    /// a window that is kept) say so when they begin.
    public static func everywhere(in bytes: [UInt8]) -> [UInt8] {
        var stream: z_stream = .init()
        // Negative: no header.
        guard inflateInit2_(&stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            preconditionFailure("zlib does not start: no memory")
        }
        defer { inflateEnd(&stream) }
        var found: [UInt8] = []
        var room: [UInt8] = .init(repeating: 0, count: 4 << 10)
        var input: [UInt8] = bytes
        input.withUnsafeMutableBufferPointer { input in
            guard let start: UnsafeMutablePointer<UInt8> = input.baseAddress else { return }
            for place: Int in 0..<input.count where start[place] & 6 != 6 {
                inflateReset(&stream)
                stream.next_in = start + place
                stream.avail_in = UInt32(input.count - place)
                append(&stream, &found, &room)
            }
        }
        return found
    }

    private static func append(_ stream: inout z_stream, _ found: inout [UInt8], _ room: inout [UInt8]) {
        let before: Int = found.count
        var status: Int32 = Z_OK
        while status == Z_OK, found.count - before < streamBytesMax {
            let count: Int = room.withUnsafeMutableBufferPointer { (target: inout UnsafeMutableBufferPointer<UInt8>) in
                stream.next_out = target.baseAddress
                stream.avail_out = UInt32(target.count)
                status = inflate(&stream, Z_NO_FLUSH)
                return target.count - Int(stream.avail_out)
            }
            guard count > 0 else { break }
            found += room[..<count]
        }
        if found.count - before < streamBytesMin { found.removeLast(found.count - before) } else { found.append(0) }
    }

    /// How a stream is wrapped.
    public enum Wrapping: Int32, CaseIterable, Sendable { case raw = -15, zlib = 15, gzip = 31 }

    /// Deflates, for tests that see whether it is found again.
    /// - Parameter level: 0 (stored) to 9.
    public static func deflated(_ bytes: [UInt8], _ wrapping: Wrapping, level: Int32 = 9) -> [UInt8] {
        var stream: z_stream = .init()
        let ready: Int32 = deflateInit2_(
            &stream, level, Z_DEFLATED, wrapping.rawValue, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size))
        precondition(ready == Z_OK, "zlib does not start: no memory")
        defer { deflateEnd(&stream) }
        var input: [UInt8] = bytes
        var output: [UInt8] = .init(repeating: 0, count: Int(deflateBound(&stream, UInt(bytes.count))) + 64)
        let left: Int = input.withUnsafeMutableBufferPointer { source in
            output.withUnsafeMutableBufferPointer { target in
                (stream.next_in, stream.avail_in) = (source.baseAddress, UInt32(source.count))
                (stream.next_out, stream.avail_out) = (target.baseAddress, UInt32(target.count))
                precondition(deflate(&stream, Z_FINISH) == Z_STREAM_END, "deflateBound promised room for all")
                return Int(stream.avail_out)
            }
        }
        return output.dropLast(left)
    }
}
