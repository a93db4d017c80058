/// Strings of a document as bytes, for who would make bytes of them anyway.
extension JSONNode {
    /// Where the bytes of a string without escapes stand in the text that `withDocument` lends; nil for anything else.
    package var plainText: Range<Int>? {
        guard JSONTape.kind(word) == JSONTape.Kind.string else { return nil }
        let start = JSONTape.offset(word)
        return start + 1..<start + JSONTape.length(word) - 1
    }

    /// Whether this is a value of the same text: then what `plainText` says of both is counted from one place.
    package func isOfDocument(_ other: JSONNode) -> Bool { storage === other.storage }

    /// The same value, whose references are counted apart: for a thread that looks at many values beside others, which
    /// would wait for each other at one count.
    package var countedApart: JSONNode { JSONNode(storage: JSONStorage(sharing: storage), index: index) }

    /// Where this value stands in its document, for `value(at:)`.
    package var place: Int { index }

    /// Another value of the document, or of one that this is a copy of (`countedApart`).
    /// - Parameter place: what `place` said there.
    package func value(at place: Int) -> JSONNode { JSONNode(storage: storage, index: place) }

    /// Lends the text of the whole document.
    package func withDocument<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        storage.bytes.withUnsafeBufferPointer(body)
    }

    /// Lends the bytes of a string, its escapes read. Not generic, so that it is not called through tables of types.
    /// - Returns: false when this is no string; then nothing is lent.
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
