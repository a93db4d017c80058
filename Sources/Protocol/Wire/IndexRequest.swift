/// The argument of `i`: `DATA:MARK:SINCE:LIMIT`, all optional (wire contract, section 5).
public struct IndexRequest: Sendable, Equatable {
    /// `1`: each entry contains the object.
    public var wantsData: Bool
    /// Where the page begins, from the page before it. All clients put it in the second field.
    public var mark: String?
    /// Only objects changed after this cv. Only one of the known clients uses this field.
    public var since: String?
    /// Entries wanted, as sent; nil when it is not a positive number.
    public var limit: Int?

    /// Makes a request.
    public init(wantsData: Bool = false, mark: String? = nil, since: String? = nil, limit: Int? = nil) {
        self.wantsData = wantsData
        self.mark = mark
        self.since = since
        self.limit = limit
    }

    /// Reads the argument; missing and empty fields are nil, and fields after the fourth are ignored.
    public init(parsing argument: ArraySlice<UInt8>) {
        let fields = argument.split(
            separator: WireText.colon, maxSplits: 4, omittingEmptySubsequences: false)
        func text(_ place: Int) -> String? {
            place < fields.count && !fields[place].isEmpty ? WireText.text(fields[place]) : nil
        }
        wantsData = fields.first.map { WireText.equals($0, "1") } ?? false
        mark = text(1)
        since = text(2)
        let number = fields.count > 3 ? WireText.integer(fields[3]) : nil
        limit = number.flatMap { $0 > 0 ? Int($0) : nil }
    }

    /// Entries to send on one page: the requested number, or the default, within the bounds.
    public var pageLimit: Int { min(limit ?? Limits.indexPageDefault, Limits.indexPageMax) }

    /// Writes the four fields.
    public func write(to writer: inout JSONWriter) {
        if wantsData { writer.raw(byte: UInt8(ascii: "1")) }
        writer.raw(byte: WireText.colon)
        if let mark { writer.plain(mark) }
        writer.raw(byte: WireText.colon)
        if let since { writer.plain(since) }
        writer.raw(byte: WireText.colon)
        if let limit { writer.write(Int64(limit)) }
    }
}
