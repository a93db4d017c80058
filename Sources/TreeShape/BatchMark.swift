public import ThicketProtocol

/// The place of a change among those of its batch: the member `tx` of a `c` message, `{"id":…,"i":…,"n":…}`.
///
/// The changes of a batch follow each other in the log, from 0 to `count - 1`. The mark is written into the ccid of the
/// change, `ID-INDEX-COUNT`, so that a catch-up and a restart give the same `tx` as the first delivery.
public struct BatchMark: Sendable, Hashable {
    /// The batch.
    public let batch: BatchID
    /// The change's place, from 0.
    public let index: Int
    /// The number of changes that the batch made, from 1.
    public let count: Int

    /// Whether the batch is complete with this change.
    public var isLast: Bool { index == count - 1 }

    /// The mark of a change; `index` is below `count`.
    public init(_ batch: BatchID, index: Int, of count: Int) {
        (self.batch, self.index, self.count) = (batch, index, count)
    }

    /// Reads `tx`.
    ///
    /// - Throws: `TreeCallFault` for every deviation.
    public init(_ value: JSONValue) throws(TreeCallFault) {
        let object = try CallObject(value, ["id", "i", "n"])
        let count = try object.number("n", 1...Int64(TreeLimits.batchChangesMax))
        self.init(try object.id("id"), index: Int(try object.number("i", 0...count - 1)), of: Int(count))
    }

    /// The mark in the ccid of a change.
    ///
    /// - Returns: nil for a ccid that is not in the form of a batch's changes.
    public init?(ccid: String) {
        let bytes = ccid.utf8
        // Each change asks this: other ccids are recognised without an allocation.
        guard bytes.count > BatchID.letterCount, bytes.count <= Self.ccidBytesMax,
            bytes.dropFirst(BatchID.letterCount).first == UInt8(ascii: "-")
        else { return nil }
        let parts = ccid.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let batch = BatchID(text: String(parts[0])), let index = Self.number(parts[1]),
            let count = Self.number(parts[2]), index < count, count <= TreeLimits.batchChangesMax
        else { return nil }
        self.init(batch, index: index, of: count)
    }

    private static func number(_ text: Substring) -> Int? {
        guard let number = Int(text), number >= 0, String(number) == text else { return nil }
        return number
    }

    /// An id, and two numbers that are not above `TreeLimits.batchChangesMax`.
    private static let ccidBytesMax: Int = BatchID.letterCount + 10

    /// The ccid of the change.
    public var ccid: String { "\(batch.text)-\(index)-\(count)" }

    /// `tx`, in its written form.
    public var json: JSONValue { ["id": .string(batch.text), "i": .count(index), "n": .count(count)] }
}
