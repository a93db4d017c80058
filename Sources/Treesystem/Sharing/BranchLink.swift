public import ThicketClient
import ThicketCrypto
internal import ThicketKeyLog
import ThicketPlatform
public import ThicketProtocol
public import ThicketTreeShape

/// A link to a branch for a person without an account (decision 0067). It is a secret, unless it needs a passphrase:
/// who has it may do what it is for.
///
/// ```swift
/// let holder = try await BranchLink(text).open()
/// try await holder.deposit(NodeSections(data: .file("form.pdf")), named: try NodeName("form.pdf"))
/// await holder.close()
/// ```
public struct BranchLink: Sendable {
    /// The server's address.
    public let server: String
    /// The app.
    public let app: String
    /// The app's public API key.
    public let apiKey: String
    /// The account that shares the branch.
    public let owner: UserID
    /// The root of the branch.
    public let root: NodeID
    /// The account that the link opens.
    public let guest: UserID
    /// What the link is for.
    public let purpose: LinkPurpose
    /// `digest(of:app:)` of the owner's keys when the link was made.
    let ownerDigest: [UInt8]
    /// 16 bytes; nil: a passphrase is needed.
    let secret: SecureBytes?

    /// Bytes of the longest text of a link.
    public static let bytesMax = 4_096
    /// Bytes of the secret.
    static let secretBytes = 16
    private static let prefix = "thicket-link-1."
    private static let checkBytes = 4
    private static let digestBytes = 32

    init(
        _ place: (server: String, app: String, apiKey: String), _ owner: PublicKeys, _ root: NodeID,
        _ guest: GuestAccount, secret: SecureBytes?
    ) throws(TreeError) {
        (server, app, apiKey) = place
        do throws(IdentifierError) { self.owner = try UserID(owner.user) } catch { throw Self.malformed }
        (self.root, self.guest, self.purpose, self.secret) = (root, guest.id, guest.purpose, secret)
        ownerDigest = Self.digest(of: owner, app: place.app)
    }

    /// Whether the link opens with a passphrase that its owner has sent by another way.
    public var needsPassphrase: Bool { secret == nil }

    /// Identifies the owner by its identity key, so that a link's holder need not believe the server.
    static func digest(of keys: PublicKeys, app: String) -> [UInt8] {
        var bytes = LabelledBytes("thicket/link-owner/1")
        // Names of that length are none of an account.
        for field in [Array(app.utf8), Array(keys.user.utf8), keys.identity.octets] { try? bytes.add(field) }
        return Hash.sha256(bytes.octets)
    }

    // MARK: - The text

    /// The link as text, which is handed out.
    public var text: String {
        var bytes = LabelledBytes("thicket/link/1")
        let label = bytes.octets.count
        let fields: [[UInt8]] = [
            Array(server.utf8), Array(app.utf8), Array(apiKey.utf8), Array(owner.text.utf8), root.octets,
            Array(guest.text.utf8), ownerDigest, [purpose == .deposit ? 0 : 1],
            secret?.withUnsafeBytes { Array($0) } ?? [],
        ]
        for field in fields { try? bytes.add(field) }
        let check = Hash.sha256(bytes.octets).prefix(Self.checkBytes)
        return Self.prefix + Base64.encodeURL(Array(bytes.octets.dropFirst(label)) + check)
    }

    /// Reads a link.
    ///
    /// - Throws: `link` with the reason `malformed` for a text that is no link, or was cut or changed on its way.
    public init(_ text: String) throws(TreeError) {
        guard text.utf8.count <= Self.bytesMax, text.utf8.starts(with: Self.prefix.utf8),
            let bytes = Base64.decodeURL(Array(text.utf8.dropFirst(Self.prefix.utf8.count))[...]),
            let fields = Self.fields(bytes), fields.count == 9
        else { throw Self.malformed }
        let names = [0, 1, 2, 3, 5].map { String(validating: fields[$0], as: UTF8.self) }
        guard let server = names[0], let app = names[1], let apiKey = names[2], let owner = names[3],
            let guest = names[4],
            let root = NodeID(octets: fields[4]), fields[6].count == Self.digestBytes,
            fields[7] == [0] || fields[7] == [1],
            fields[8].isEmpty || fields[8].count == Self.secretBytes
        else { throw Self.malformed }
        (self.server, self.app, self.apiKey, self.root, ownerDigest) = (server, app, apiKey, root, fields[6])
        do throws(IdentifierError) { (self.owner, self.guest) = (try UserID(owner), try UserID(guest)) } catch {
            throw Self.malformed
        }
        guard self.guest.isGuest else { throw Self.malformed }
        purpose = fields[7] == [0] ? .deposit : .reading
        secret = fields[8].isEmpty ? nil : SecureBytes(copying: fields[8])
    }

    /// The fields in front of the checksum; nil when one is cut, or the checksum is another.
    private static func fields(_ bytes: [UInt8]) -> [[UInt8]]? {
        guard bytes.count > checkBytes else { return nil }
        let (body, check) = (bytes.dropLast(checkBytes), bytes.suffix(checkBytes))
        let label = LabelledBytes("thicket/link/1").octets
        guard Hash.sha256(label + body).prefix(checkBytes).elementsEqual(check) else { return nil }
        var (fields, rest) = ([[UInt8]](), body[...])
        while let high = rest.popFirst() {
            guard let low = rest.popFirst() else { return nil }
            let count = Int(high) << 8 | Int(low)
            guard rest.count >= count else { return nil }
            fields.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        return fields
    }

    private static let malformed = TreeError(
        .link, "this is not a link to a branch, or a part of it is missing", reason: "malformed")
}

extension BranchLink: CustomStringConvertible, CustomReflectable {
    /// A fixed text: the secret never reaches a log.
    public var description: String { "(a link to a branch)" }
    /// Empty, for the same reason.
    public var customMirror: Mirror { Mirror(self, children: [], displayStyle: .struct) }
}
