/// Strings of a document as bytes, for callers that would convert them to bytes anyway.
extension JSONNode {
    /// Where a string without escapes is in the text that `withDocument` lends, without its quotes; nil for any other
    /// value.
    package var plainText: Range<Int>? {
        guard JSONTape.kind(word) == JSONTape.Kind.string else { return nil }
        let start = JSONTape.offset(word)
        return start + 1..<start + JSONTape.length(word) - 1
    }

    /// Whether both values belong to one document: their `plainText` ranges then count from the same start.
    package func isOfDocument(_ other: JSONNode) -> Bool { storage === other.storage }

    /// The same value with a separate reference count. For a thread that reads many values while other threads read
    /// them too, because all would contend for one count.
    package var countedApart: JSONNode { JSONNode(storage: JSONStorage(sharing: storage), index: index) }

    /// The index of this value in its document, for `value(at:)`.
    package var place: Int { index }

    /// Another value of this document, or of the document that this value is a copy of (`countedApart`).
    ///
    /// - Parameter place: the `place` of the value in that document.
    package func value(at place: Int) -> JSONNode { JSONNode(storage: storage, index: place) }

    /// Lends the text of the whole document.
    package func withDocument<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        storage.bytes.withUnsafeBufferPointer(body)
    }

    /// Lends the bytes of a string, with escapes decoded. Not generic, so that the call needs no type metadata.
    ///
    /// - Returns: false when this is not a string; `body` is not called then.
    package func withText(_ body: (UnsafeBufferPointer<UInt8>) -> Void) -> Bool {
        if let plainText {
            withDocument { body(UnsafeBufferPointer(rebasing: $0[plainText])) }
            return true
        }
        guard let string else { return false }
        string.withBytes(body)
        return true
    }
}
