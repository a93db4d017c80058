internal import CThicketNet

/// The date field of responses, made once a second.
struct HTTPDate {
    private var cached = ""
    private var validUntil = Int64.min

    /// - Parameter now: nanoseconds of the monotonic clock; it only decides when to read the wall clock again.
    mutating func text(_ now: Int64) -> String {
        if now >= validUntil {
            var text = [CChar](repeating: 0, count: 40)
            let count = Int(thicket_http_date(&text, Int32(text.count)))
            cached = String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            validUntil = now + 1_000_000_000
        }
        return cached
    }
}
