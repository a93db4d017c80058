import Glibc
import Testing
import ThicketAuth
import ThicketProtocol
import ThicketTestSupport

/// `jwt/requests.json` of the third-party vectors.
struct RequestVectors {
    struct Case {
        let name: String
        let path: String
        let now: Double
        let request: HTTPRequest
        let status: Int
        let body: JSONObject?
        let bodyHas: JSONObject?

        func check(_ response: HTTPResponse) {
            #expect(response.status == status, "\(name)")
            let answer: JSONObject? = (try? JSONDocument(parsing: response.body[...]))?.root.object
            if let body: JSONObject { #expect(answer.map(JSONValue.object) == .object(body), "\(name)") }
            for pair: JSONObject.Pair in bodyHas?.pairs ?? [] {
                let found: JSONValue? = answer?[pair.key]
                // The file's word for a text that it cannot know.
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
        var text: [UInt8] = Array("\(method) \(path) HTTP/1.1\r\nhost: x\r\n".utf8)
        for (name, value) in try #require(node["headers"]).pairs {
            text += Array("\(name): ".utf8) + Array(try #require(value.string).utf8) + Array("\r\n".utf8)
        }
        let body: [UInt8] = Array((node["body"]?.string ?? "").utf8)
        text += Array("content-length: \(body.count)\r\n\r\n".utf8) + body
        let expect: JSONNode = try #require(node["expect"])
        return Case(
            name: try #require(node["name"]?.string), path: path, now: try #require(node["now"]?.number).double,
            request: try request(text), status: Int(try #require(expect["status"]?.int64)),
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

    /// The partners and users that the file says exist already.
    func directory() -> MemoryDirectory {
        let directory: MemoryDirectory = .init()
        var ids: [String: String] = [:]
        for (name, node) in root["partners"]?.pairs.map({ $0 }) ?? [] {
            let id: String = node["partner_id"]?.string ?? ""
            ids[name] = id
            directory.partners[node["api_key"]?.string ?? ""] = Partner(
                id: id, authKeys: node["auth_key"]?.string.map { [Array($0.utf8)] } ?? [])
        }
        for (_, node) in root["users"]?.pairs.map({ $0 }) ?? [] {
            let id: String = node["entity_id"]?.string ?? ""
            directory.entities[id] = Entity(
                id: id, partner: ids[node["partner"]?.string ?? ""] ?? "",
                partnerEntity: node["partner_entity_id"]?.string ?? "")
        }
        return directory
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
