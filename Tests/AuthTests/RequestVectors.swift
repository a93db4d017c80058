import Glibc
import Testing
import ThicketAuth
import ThicketProtocol
import ThicketServer
import ThicketTestSupport

/// `jwt/requests.json` of the third-party vectors.
struct RequestVectors {
    struct Case {
        let name: String
        let path: String
        let now: Double
        /// The head without its empty line; `content` is the body.
        let head: String
        let content: String
        let request: HTTPRequest
        let status: Int
        let body: JSONObject?
        let bodyHas: JSONObject?

        /// The request as it goes over the wire.
        func text(closing: Bool) -> String { head + (closing ? "connection: close\r\n" : "") + "\r\n" + content }

        func check(_ response: HTTPResponse) {
            #expect(response.status == status, "\(name)")
            let answer: JSONObject? = (try? JSONDocument(parsing: response.body[...]))?.root.object
            if let body: JSONObject { #expect(answer.map(JSONValue.object) == .object(body), "\(name)") }
            for pair: JSONObject.Pair in bodyHas?.pairs ?? [] {
                let found: JSONValue? = answer?[pair.key]
                // The file's placeholder for a text that it cannot know.
                if pair.value == .string("<non-empty string>") {
                    #expect(found?.stringValue?.isEmpty == false, "\(name): \(pair.key)")
                } else {
                    #expect(found == pair.value, "\(name): \(pair.key)")
                }
            }
        }
    }

    let root: JSONNode
    let cases: [Case]

    static func load() throws -> RequestVectors {
        let root: JSONNode = try JSONDocument(parsing: try bytes(of: Vectors.path("jwt/requests.json"))[...]).root
        return RequestVectors(root: root, cases: try (root["cases"]?.elements.map { $0 } ?? []).map(read))
    }

    private static func read(_ node: JSONNode) throws -> Case {
        let (method, path): (String, String) = (
            try #require(node["method"]?.string), try #require(node["path"]?.string)
        )
        var head: String = "\(method) \(path) HTTP/1.1\r\nhost: x\r\n"
        for (name, value) in try #require(node["headers"]).pairs {
            head += "\(name): \(try #require(value.string))\r\n"
        }
        let content: String = node["body"]?.string ?? ""
        head += "content-length: \(content.utf8.count)\r\n"
        let expect: JSONNode = try #require(node["expect"])
        return Case(
            name: try #require(node["name"]?.string), path: path, now: try #require(node["now"]?.number).double,
            head: head, content: content, request: try request(Array((head + "\r\n" + content).utf8)),
            status: Int(try #require(expect["status"]?.int64)),
            body: expect["body"]?.object,
            bodyHas: expect["body_has"]?.object)
    }

    static func request(_ text: [UInt8]) throws -> HTTPRequest {
        var reader: HTTPRequestReader = .init()
        let request: HTTPRequest? = try text.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var input: UnsafeRawBufferPointer = bytes
            return try reader.next(&input)
        }
        return try #require(request)
    }

    private struct Known {
        let id: String
        let apiKey: String
        let authKey: String?
    }

    private var partners: [(name: String, known: Known)] {
        root["partners"]?.pairs.map { name, node in
            (
                name,
                Known(
                    id: node["partner_id"]?.string ?? "", apiKey: node["api_key"]?.string ?? "",
                    authKey: node["auth_key"]?.string)
            )
        } ?? []
    }

    private var users: [Entity] {
        let ids: [String: String] = .init(uniqueKeysWithValues: partners.map { ($0.name, $0.known.id) })
        return root["users"]?.pairs.map { _, node in
            Entity(
                id: node["entity_id"]?.string ?? "", partner: ids[node["partner"]?.string ?? ""] ?? "",
                partnerEntity: node["partner_entity_id"]?.string ?? "")
        } ?? []
    }

    /// The partners and users that the file says exist already, in memory.
    func directory() -> MemoryDirectory {
        let directory: MemoryDirectory = .init()
        for (_, known) in partners {
            directory.partners[known.apiKey] = Partner(
                id: known.id, authKeys: known.authKey.map { [Array($0.utf8)] } ?? [])
        }
        for user: Entity in users { directory.entities[user.id] = user }
        return directory
    }

    /// The same in a store.
    func fill(path: String, key: ServerKey) throws {
        let admin: PartnerAdmin = try .init(path: path, key: key)
        for (_, known) in partners {
            try admin.add(id: known.id, apiKey: known.apiKey, authKey: known.authKey, now: 0)
        }
        let store: PartnerStore = try .init(path: path, key: key)
        for user: Entity in users {
            let made: Entity = try store.register(
                partner: user.partner, partnerEntity: user.partnerEntity, email: "a@b", newID: user.id, now: 0)
            try #require(made.id == user.id)
        }
    }

    private struct VectorError: Error {}

    private static func bytes(of path: String) throws -> [UInt8] {
        let file: Int32 = open(path, O_RDONLY)
        guard file >= 0 else { throw VectorError() }
        defer { close(file) }
        var bytes: [UInt8] = []
        var chunk: [UInt8] = .init(repeating: 0, count: 65_536)
        while true {
            let count: Int = Glibc.read(file, &chunk, chunk.count)
            guard count > 0 else { return bytes }
            bytes += chunk[..<count]
        }
    }
}
