import Glibc
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketServer
import ThicketTestServer
import ThicketTestSupport
import ThicketTreeShape

/// A server with blobs, on a store that outlives it.
final class BlobFixture {
    let tree: TestStore
    let blobs: any BlobStore
    private(set) var server: TestServer
    private let folder: String?
    private let configure: @Sendable (inout ServerConfig) -> Void

    /// - Parameter blobs: nil: files in a folder.
    init(
        _ kind: StoreKind = .sqlite, blobs: (any BlobStore)? = nil,
        configure: @escaping @Sendable (inout ServerConfig) -> Void = { _ in }
    ) throws {
        tree = try TestStore(kind)
        self.configure = configure
        if let blobs {
            (self.blobs, folder) = (blobs, nil)
        } else {
            let folder = try TemporaryFolder.make()
            (self.blobs, self.folder) = (FolderBlobStore(folder: folder), folder)
        }
        server = try Self.start(tree.store, self.blobs, configure)
    }

    deinit {
        server.stop()
        if let folder { BlobFixture.remove(folder) }
    }

    private static func start(
        _ store: any Store, _ blobs: any BlobStore, _ configure: @escaping @Sendable (inout ServerConfig) -> Void
    ) throws -> TestServer { try TestServer(store: store, blobs: blobs, configure: configure) }

    /// Kills the server, and starts the next one on what is on disk.
    func restart() throws {
        server.abort()
        try tree.reopen()
        server = try Self.start(tree.store, blobs, configure)
    }

    /// The file of a blob, for a store that is a folder.
    func file(of blob: String) throws -> String {
        guard let folder else { throw TestFailure("the blobs are not in a folder") }
        return "\(folder)/blobs/\(blob.prefix(2))/\(blob)"
    }

    func peer(_ token: String = "ann-token") throws -> BlobPeer { try BlobPeer(port: server.port, token: token) }

    /// A socket whose channel 0 is ann's tree.
    func socket(_ token: String = "ann-token") throws -> TestClient {
        let client = try server.client()
        let answer = try client.ask(
            "0:init:{\"clientid\":\"c\",\"api\":\"1.1\",\"token\":\"\(token)\",\"app_id\":\"app\",\"name\":\"tree\","
                + "\"mode\":\"tree\"}")
        guard answer.hasPrefix("0:auth:"), !answer.hasPrefix("0:auth:{") else { throw TestFailure(answer) }
        let mode = try client.receive()
        guard mode == #"0:o:{"mode":"tree"}"# else { throw TestFailure(mode) }
        return client
    }

    private static func remove(_ folder: String) {
        if let names = try? names(folder) {
            for name in names { remove("\(folder)/\(name)") }
            rmdir(folder)
        } else {
            unlink(folder)
        }
    }

    private static func names(_ folder: String) throws -> [String] {
        guard let entries = opendir(folder) else { throw TestFailure("not a folder") }
        defer { closedir(entries) }
        var names = [String]()
        while let entry = readdir(entries) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    /// Names of all files, relative to the blob folder.
    var files: [String] {
        func below(_ path: String, _ prefix: String) -> [String] {
            guard let names = try? Self.names(path) else { return [prefix] }
            return names.flatMap { below("\(path)/\($0)", prefix.isEmpty ? $0 : "\(prefix)/\($0)") }
        }
        return folder.map { below($0, "").sorted() } ?? []
    }
}

/// A client of blobs: one connection, binary bodies both ways.
final class BlobPeer {
    struct Reply {
        let status: Int
        let fields: HTTPFields
        let bytes: [UInt8]
        var object: JSONObject { (try? JSONValue(parsing: String(decoding: bytes, as: UTF8.self)))?.objectValue ?? [:] }
        var code: String? { object["code"]?.stringValue }
        var upload: String? { object["upload"]?.stringValue }
        var blob: String? { object["blob"]?.stringValue }
    }

    private let peer: HTTPPeer
    private let token: String

    init(port: Int, token: String) throws {
        peer = try HTTPPeer(port: port)
        self.token = token
    }

    func send(_ method: String, _ path: String, _ fields: [String: String] = [:], length: Int? = nil) throws {
        var head = "\(method) /1/app/blob\(path) HTTP/1.1\r\nHost: test\r\nX-Simperium-Token: \(token)\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        if let length { head += "Content-Length: \(length)\r\n" }
        try peer.send(raw: Array((head + "\r\n").utf8))
    }

    func send(raw bytes: [UInt8]) throws { try peer.send(raw: bytes) }

    func reply(isHead: Bool = false) throws -> Reply {
        let head = try peer.head()
        let count = isHead ? 0 : head.fields["content-length"].flatMap { Int($0) } ?? 0
        return Reply(status: head.status, fields: head.fields, bytes: try peer.take(count))
    }

    func ask(
        _ method: String, _ path: String = "", _ fields: [String: String] = [:], body: [UInt8]? = nil
    ) throws -> Reply {
        try send(method, path, fields, length: body?.count)
        if let body { try send(raw: body) }
        return try reply(isHead: method == "HEAD")
    }

    func ask(_ method: String, _ path: String = "", json: String) throws -> Reply {
        try ask(method, path, body: Array(json.utf8))
    }

    /// Bytes until the server ends the connection.
    func rest() throws -> Int { try peer.rest().utf8.count }
    func close(isReset: Bool = false) { peer.close(isReset: isReset) }

    // MARK: Uploads

    func put(_ upload: String, _ number: Int, _ bytes: [UInt8], hash: [UInt8]? = nil) throws -> Reply {
        try ask("PUT", "/\(upload)/\(number)", BlobText.hash(hash ?? Hash.sha256(bytes)), body: bytes)
    }

    func begin(length: Int, part: Int? = nil) throws -> Reply {
        try ask("POST", json: "{\"length\":\(length)\(part.map { ",\"part\":\($0)" } ?? "")}")
    }

    func complete(_ upload: String, _ parts: [[UInt8]]) throws -> Reply {
        let proof = Hex.encode(Hash.sha256(parts.flatMap { Hash.sha256($0) }))
        return try ask("POST", "/\(upload)/complete", json: "{\"sha256\":\"\(proof)\"}")
    }

    /// A blob in one request.
    func add(_ bytes: [UInt8]) throws -> Reply {
        try ask("POST", "", BlobText.hash(Hash.sha256(bytes)), body: bytes)
    }

    func read(_ blob: String, _ number: Int, owner: String = "ann@example.com", _ fields: [String: String] = [:])
        throws -> Reply
    {
        try ask("GET", "/\(blob)?node=\(owner)/\(BlobText.node(number))", fields)
    }
}

/// Bytes, records and changes.
enum BlobText {
    static func hash(_ hash: [UInt8]) -> [String: String] { ["X-Part-SHA256": Hex.encode(hash)] }

    static func node(_ number: Int) -> String { NodeID(UInt128(number)).text }

    /// Bytes with the length of sealed content, different for each seed.
    /// - Parameter plain: bytes of the plain stream.
    static func bytes(_ plain: Int, seed: UInt64 = 1) -> [UInt8] {
        var random = SeededRandom(seed: seed)
        let count = plain + 16 * ((plain + 65_535) / 65_536)
        var bytes = [UInt8]()
        bytes.reserveCapacity(count + 8)
        while bytes.count < count { withUnsafeBytes(of: random.next()) { bytes += $0 } }
        return Array(bytes.prefix(count))
    }

    static func record(_ number: Int, blob: String?, length: Int, base: Int = 0) throws -> JSONObject {
        let wrap = RecordWrap(.parent, sealed: [1] + [UInt8](repeating: 3, count: TreeLimits.parentWrapBytes - 1))
        let data = blob.flatMap(BlobID.init(text:)).map {
            RecordData.blob(DataID(UInt128(number)), length: UInt64(length), blob: $0)
        }
        let record = NodeRecord(
            parent: .trunk(.home), tag: try NodeTag(of: Array("n\(number)".utf8), salt: []), epoch: 0, wraps: [wrap],
            commitment: [UInt8](repeating: 2, count: NodeKey.bytesCount),
            metadata: [1] + [UInt8](repeating: 4, count: SealedMessage.extraBytes + TreeLimits.metadataStep - 1),
            data: data, base: Version(base))
        return record.object
    }

    /// A change that writes a record.
    static func change(_ number: Int, blob: String?, length: Int, base: Int = 0, ccid: String) throws -> String {
        let record = JSONValue.object(try record(number, blob: blob, length: length, base: base)).serializedText
        let source = base > 0 ? ",\"sv\":\(base)" : ""
        return "0:c:{\"id\":\"\(node(number))\",\"o\":\"M\",\"ccid\":\"\(ccid)\"\(source),\"d\":\(record)}"
    }
}
