import ThicketCrypto
public import ThicketProtocol

/// Names the conversation to which a message belongs: 32 bytes. Each device of an author counts its messages in each
/// conversation (decision 0067).
public struct ConversationID: Sendable, Hashable {
    /// Bytes of an id.
    public static let bytesCount = Digest256.byteCount

    private let digest: Digest256

    /// The id as 32 bytes.
    public var octets: [UInt8] { digest.bytes }

    /// Reads an id; an app may choose any.
    ///
    /// - Returns: nil for another number of bytes.
    public init?(octets: some Collection<UInt8>) {
        guard let digest = Digest256(octets) else { return nil }
        self.digest = digest
    }

    /// The conversation of some accounts, for messages of which the app names no other: SHA-256 over
    /// `thicket/conversation/1`, the app, and all accounts in the order of their bytes, each once.
    ///
    /// - Parameters:
    ///   - app: the app.
    ///   - participants: the author and the recipients, in any order.
    public init(app: AppID, participants: Set<UserID>) {
        var bytes = LabelledBytes("thicket/conversation/1")
        for name in [app.text] + UserID.inOrder(participants).map(\.text) {
            guard (try? bytes.add(name.utf8)) != nil else { preconditionFailure("a name is shorter than a field") }
        }
        digest = .of(bytes.octets)
    }
}

extension UserID {
    /// Accounts in the order of the bytes of their ids.
    static func inOrder(_ users: some Sequence<UserID>) -> [UserID] {
        users.sorted { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) }
    }
}
