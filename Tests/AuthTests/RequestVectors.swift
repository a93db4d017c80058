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
            let answer = (try? JSONDocument(parsing: response.body[...]))?.root.object
            if let body { #expect(answer.map(JSONValue.object) == .object(body), "\(name)") }
            for pair in bodyHas?.pairs ?? [] {
                let found = answer?[pair.key]
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
        let root = try JSONDocument(parsing: try bytes(of: Vectors.path("jwt/requests.json"))[...]).root
        return RequestVectors(root: root, cases: try (root["cases"]?.elements.map { $0 } ?? []).map(read))
    }

    private static func read(_ node: JSONNode) throws -> Case {
        let (method, path) = (
            try #require(node["method"]?.string), try #require(node["path"]?.string)
        )
        var head = "\(method) \(path) HTTP/1.1\r\nhost: x\r\n"
        for (name, value) in try #require(node["headers"]).pairs {
            head += "\(name): \(try #require(value.string))\r\n"
        }
        let content = node["body"]?.string ?? ""
        head += "content-length: \(content.utf8.count)\r\n"
        let expect = try #require(node["expect"])
        return Case(
            name: try #require(node["name"]?.string), path: path, now: try #require(node["now"]?.number).double,
            head: head, content: content, request: try request(Array((head + "\r\n" + content).utf8)),
            status: Int(try #require(expect["status"]?.int64)),
            body: expect["body"]?.object,
            bodyHas: expect["body_has"]?.object)
    }

    static func request(_ text: [UInt8]) throws -> HTTPRequest {
        var reader = HTTPRequestReader()
        let request = try text.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var input = bytes
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
        let ids = [String: String](uniqueKeysWithValues: partners.map { ($0.name, $0.known.id) })
        return root["users"]?.pairs.map { _, node in
            Entity(
                id: node["entity_id"]?.string ?? "", partner: ids[node["partner"]?.string ?? ""] ?? "",
                partnerEntity: node["partner_entity_id"]?.string ?? "")
        } ?? []
    }

    /// The partners and users that the file says exist already, in memory.
    func directory() -> MemoryDirectory {
        let directory = MemoryDirectory()
        for (_, known) in partners {
            directory.partners[known.apiKey] = Partner(
                id: known.id, authKeys: known.authKey.map { [Array($0.utf8)] } ?? [])
        }
        for user in users { directory.entities[user.id] = user }
        return directory
    }

    /// The same in a store.
    func fill(path: String, key: ServerKey) throws {
        let admin = try PartnerAdmin(path: path, key: key)
        for (_, known) in partners {
            try admin.add(id: known.id, apiKey: known.apiKey, authKey: known.authKey, now: 0)
        }
        let store = try PartnerStore(path: path, key: key)
        for user in users {
            let made = try store.register(
                partner: user.partner, partnerEntity: user.partnerEntity, email: "a@b", newID: user.id, now: 0)
            try #require(made.id == user.id)
        }
    }

    private struct VectorError: Error {}

    private static func bytes(of path: String) throws -> [UInt8] {
        let file = open(path, O_RDONLY)
        guard file >= 0 else { throw VectorError() }
        defer { close(file) }
        var bytes = [UInt8]()
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(file, &chunk, chunk.count)
            guard count > 0 else { return bytes }
            bytes += chunk[..<count]
        }
    }
}
