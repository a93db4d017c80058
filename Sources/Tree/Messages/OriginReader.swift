import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol
import ThicketTreeShape

/// Reads the parts of statements in order. Each part is bounded by the bytes that are there.
struct OriginReader {
    private var rest: ArraySlice<UInt8>

    init(_ octets: [UInt8]) { rest = octets[...] }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func part(_ count: Int) -> [UInt8]? {
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func number(_ count: Int) -> UInt64? { part(count).map { $0.reduce(0) { $0 << 8 | UInt64($1) } } }

    /// A part behind its length of 16 bits.
    mutating func field() -> [UInt8]? { number(2).flatMap { part(Int($0)) } }

    private mutating func text() -> String? { field().flatMap { String(validating: $0, as: UTF8.self) } }

    private mutating func user() -> UserID? { text().flatMap { try? UserID($0) } }

    private mutating func whole() -> UInt64? {
        guard let field = field(), field.count == 8 else { return nil }
        return field.reduce(0) { $0 << 8 | UInt64($1) }
    }

    private mutating func digest() -> Digest256? { field().flatMap { Digest256($0) } }

    /// The fields and the signature; nil for bytes that are not those of a statement. The caller compares the bytes
    /// with the written form.
    static func statement(_ octets: [UInt8]) -> (OriginStatement.Fields, signature: [UInt8])? {
        let label = LabelledBytes("thicket/origin/1").octets
        guard octets.starts(with: label) else { return nil }
        var reader = OriginReader(Array(octets.dropFirst(label.count)))
        guard let app = reader.text().flatMap({ try? AppID($0) }), let author = reader.user(),
            let keyID = reader.text(), let device = reader.whole(),
            let recipients = reader.field().flatMap(users), let conversation = reader.digest(),
            let counter = reader.whole(), let previous = reader.digest(), let sent = reader.whole(),
            let nodes = reader.field().flatMap(nodes), let first = nodes.first, let head = reader.field(),
            let login = reader.text(), let signature = reader.field(), signature.count == Ed25519.signatureBytes,
            reader.isAtEnd,
            let name = ConversationID(octets: conversation.bytes), let time = Int64(exactly: sent)
        else { return nil }
        let known = try? head.isEmpty ? nil : KeyLogHead(head)
        guard head.isEmpty || known != nil else { return nil }
        let fields = OriginStatement.Fields(
            app: app, author: author, keyID: keyID, device: device, recipients: Set(recipients), conversation: name,
            counter: counter, previous: previous, sent: time, message: first, attachments: Array(nodes.dropFirst()),
            head: known, name: login.isEmpty ? nil : login)
        return (fields, signature)
    }

    private static func users(_ field: [UInt8]) -> [UserID]? {
        var (reader, users) = (OriginReader(field), [UserID]())
        while !reader.isAtEnd {
            guard users.count < OriginStatement.recipientsMax, let user = reader.user() else { return nil }
            users.append(user)
        }
        return users
    }

    private static func nodes(_ field: [UInt8]) -> [OriginNode]? {
        var (reader, nodes) = (OriginReader(field), [OriginNode]())
        while !reader.isAtEnd {
            guard nodes.count < OriginStatement.nodesMax, let node = reader.node() else { return nil }
            nodes.append(node)
        }
        return nodes
    }

    private mutating func node() -> OriginNode? {
        guard let id = part(NodeID.bytesCount).flatMap({ NodeID(octets: $0) }), let mark = number(1), mark < 2 else {
            return nil
        }
        if mark == 0 { return OriginNode(id, nil) }
        guard let data = part(DataID.bytesCount).flatMap({ DataID(octets: $0) }), let length = number(8),
            let digest = part(Digest256.byteCount).flatMap({ Digest256($0) })
        else { return nil }
        return OriginNode(id, ContentDigest(data, length: length, digest: digest))
    }
}
