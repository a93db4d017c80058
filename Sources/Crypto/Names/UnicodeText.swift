// Linux only: utf8proc and OpenSSL; on Apple platforms: CFStringNormalize, CFStringFold and memset_s.
internal import COpenSSL
internal import CUTF8Proc

/// Unicode forms that Swift's standard library does not offer, implemented with utf8proc. Independent of the locale.
public enum UnicodeText {
    /// Why a text cannot be converted.
    public enum Failure: Error, Sendable, Hashable {
        /// The bytes are not UTF-8.
        case notUTF8
        /// The text has more than `bytesMax` bytes.
        case tooLong
    }

    /// Bytes of one text at most.
    public static let bytesMax = 1 << 16

    /// Version of the Unicode data, such as "15.0.0". Characters of later versions stay unchanged.
    public static var version: String { String(cString: utf8proc_unicode_version()) }

    /// The text in normalisation form C (Unicode Standard Annex 15), as UTF-8.
    public static func composed(_ text: [UInt8]) throws(Failure) -> [UInt8] {
        try text.withUnsafeBytes { bytes in
            bytes.count <= bytesMax ? map(bytes, composition) { Array($0) } : .failure(.tooLong)
        }.get()
    }

    /// The text in normalisation form C, for passwords: the result is in memory that is wiped when `use` returns.
    public static func composed<Value>(
        _ text: UnsafeRawBufferPointer, _ use: (UnsafeRawBufferPointer) -> Value
    ) throws(Failure) -> Value {
        guard text.count <= bytesMax else { throw .tooLong }
        return try map(text, composition, use).get()
    }

    /// NFC, full case folding (Unicode Standard 3.13, toCasefold, without the Turkic rules), NFC: names that people
    /// consider equal become equal bytes.
    public static func folded(_ text: [UInt8]) throws(Failure) -> [UInt8] {
        let composed = try composed(text)
        return try composed.withUnsafeBytes { bytes in
            map(bytes, composition | UTF8PROC_CASEFOLD.rawValue) { Array($0) }
        }.get()
    }

    /// Only mappings that later versions of Unicode will not change.
    private static var composition: UInt32 { UTF8PROC_STABLE.rawValue | UTF8PROC_COMPOSE.rawValue }

    private static func map<Value>(
        _ text: UnsafeRawBufferPointer, _ options: UInt32, _ use: (UnsafeRawBufferPointer) -> Value
    ) -> Result<Value, Failure> {
        let start = text.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let options = utf8proc_option_t(options)
        let count: Int = utf8proc_decompose(start, text.count, nil, 0, options)
        guard count >= 0 else { return .failure(.notUTF8) }
        // One more, because utf8proc ends its output with a zero.
        let room = UnsafeMutableBufferPointer<Int32>.allocate(capacity: count + 1)
        defer {
            OPENSSL_cleanse(room.baseAddress, room.count * MemoryLayout<Int32>.stride)
            room.deallocate()
        }
        guard utf8proc_decompose(start, text.count, room.baseAddress, count, options) == count else {
            return .failure(.notUTF8)
        }
        let length: Int = utf8proc_reencode(room.baseAddress, count, options)
        guard length >= 0 else { return .failure(.notUTF8) }
        return .success(use(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(room)[..<length])))
    }
}
