internal import CZlib
import Glibc

/// Whole gzip files in memory (RFC 1952), by zlib.
public enum Gzip {
    /// Most bytes of an unpacked file, so that a small file cannot fill the memory.
    public static let unpackedBytesMax = 1 << 30

    /// Unpacks a file. Throws `notGzip` for invalid data and for more than `unpackedBytesMax` bytes.
    public static func unpack(_ packed: [UInt8]) throws(TraceError) -> [UInt8] {
        var stream = z_stream()
        guard inflateInit2_(&stream, 15 + 32, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            throw .notGzip("zlib does not start")
        }
        defer { inflateEnd(&stream) }
        var input = packed
        var output = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 1 << 18)
        var status = Z_OK
        input.withUnsafeMutableBufferPointer { source in
            stream.next_in = source.baseAddress
            stream.avail_in = UInt32(source.count)
            while status == Z_OK, output.count <= Self.unpackedBytesMax {
                chunk.withUnsafeMutableBufferPointer { target in
                    stream.next_out = target.baseAddress
                    stream.avail_out = UInt32(target.count)
                    status = inflate(&stream, Z_NO_FLUSH)
                    output += target[0..<(target.count - Int(stream.avail_out))]
                }
            }
        }
        guard status == Z_STREAM_END else { throw .notGzip("it ends early or is damaged (zlib \(status))") }
        return output
    }

    /// Packs bytes as a gzip file.
    public static func pack(_ bytes: [UInt8]) -> [UInt8] {
        var stream = z_stream()
        let ready = deflateInit2_(
            &stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        precondition(ready == Z_OK, "zlib does not start: no memory")
        defer { deflateEnd(&stream) }
        var input = bytes
        var output = [UInt8](repeating: 0, count: Int(deflateBound(&stream, UInt(bytes.count))) + 64)
        let size = input.withUnsafeMutableBufferPointer { source in
            output.withUnsafeMutableBufferPointer { target in
                stream.next_in = source.baseAddress
                stream.avail_in = UInt32(source.count)
                stream.next_out = target.baseAddress
                stream.avail_out = UInt32(target.count)
                let status = deflate(&stream, Z_FINISH)
                precondition(status == Z_STREAM_END, "deflateBound promised room for all")
                return target.count - Int(stream.avail_out)
            }
        }
        return Array(output[0..<size])
    }
}

extension Trace {
    /// Reads a trace file, packed (`.gz`) or plain.
    public init(path: String) throws(TraceError) {
        guard let file = fopen(path, "rb") else { throw .notReadable(path: path) }
        defer { fclose(file) }
        var bytes = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = fread(&chunk, 1, chunk.count, file)
            if count == 0 { break }
            bytes += chunk[0..<count]
        }
        try self.init(json: bytes.starts(with: [0x1F, 0x8B]) ? Gzip.unpack(bytes) : bytes)
    }
}
