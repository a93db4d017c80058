internal import CZlib

/// Inflates deflated data, wherever it begins: raw streams, and those of zlib and gzip, which hold a raw one.
public enum Inflated {
    /// Largest output of one place. More is not inflated.
    public static let streamBytesMax = 1 << 20
    /// Smallest useful output: a canary has at least eight bytes.
    private static let streamBytesMin = 8

    /// The output of inflating from every place of `bytes`, one behind another with zeros between. Most places begin no
    /// stream and give nothing, or some bytes before the error appears.
    ///
    /// Blocks that refer to data before the place cannot be read; protocols that send such blocks (permessage-deflate
    /// with context takeover) negotiate it at their beginning.
    public static func everywhere(in bytes: [UInt8]) -> [UInt8] {
        var stream = z_stream()
        // Negative: no header.
        guard inflateInit2_(&stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            preconditionFailure("zlib does not start: no memory")
        }
        defer { inflateEnd(&stream) }
        var found = [UInt8]()
        var room = [UInt8](repeating: 0, count: 4 << 10)
        var input = bytes
        input.withUnsafeMutableBufferPointer { input in
            guard let start = input.baseAddress else { return }
            for place in 0..<input.count where start[place] & 6 != 6 {
                inflateReset(&stream)
                stream.next_in = start + place
                stream.avail_in = UInt32(input.count - place)
                append(&stream, &found, &room)
            }
        }
        return found
    }

    private static func append(_ stream: inout z_stream, _ found: inout [UInt8], _ room: inout [UInt8]) {
        let before = found.count
        var status = Z_OK
        while status == Z_OK, found.count - before < streamBytesMax {
            let count = room.withUnsafeMutableBufferPointer { (target: inout UnsafeMutableBufferPointer<UInt8>) in
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

    /// The wrapping of a stream.
    public enum Wrapping: Int32, CaseIterable, Sendable { case raw = -15, zlib = 15, gzip = 31 }

    /// Deflates, for tests of the search.
    /// - Parameter level: 0 (stored) to 9.
    public static func deflated(_ bytes: [UInt8], _ wrapping: Wrapping, level: Int32 = 9) -> [UInt8] {
        var stream = z_stream()
        let ready = deflateInit2_(
            &stream, level, Z_DEFLATED, wrapping.rawValue, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            Int32(MemoryLayout<z_stream>.size))
        precondition(ready == Z_OK, "zlib does not start: no memory")
        defer { deflateEnd(&stream) }
        var input = bytes
        var output = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(bytes.count))) + 64)
        let left = input.withUnsafeMutableBufferPointer { source in
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
