public import ThicketCrypto

/// The counters of this device as an author: for each conversation its last statement. Pure.
///
/// A number is given when a batch is made, and counts once the batch is answered: the caller keeps what `advance`
/// returns apart until then (decision 0067).
public struct AuthorChains: Sendable, Hashable {
    /// The last statement of a conversation.
    public struct Link: Sendable, Hashable {
        /// Its number.
        public let counter: UInt64
        /// Its hash.
        public let hash: Digest256

        /// A link.
        public init(counter: UInt64, hash: Digest256) { (self.counter, self.hash) = (counter, hash) }
    }

    /// The conversations that were read or have advanced.
    public private(set) var links = [ConversationID: Link]()

    /// No conversation.
    public init() {}

    /// What the next statement of a conversation names.
    ///
    /// - Parameter known: the last answered statement; used for a conversation that has not advanced here.
    public func next(
        in conversation: ConversationID, after known: Link?
    ) -> (counter: UInt64, previous: Digest256) {
        guard let last = links[conversation] ?? known else { return (1, .zero) }
        return (last.counter + 1, last.hash)
    }

    /// A statement was made.
    public mutating func advance(_ statement: OriginStatement) {
        links[statement.fields.conversation] = Link(counter: statement.fields.counter, hash: statement.hash)
    }
}
