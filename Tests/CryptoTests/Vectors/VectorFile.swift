import Glibc
import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

/// A published file of test cases, read from `THICKET_VECTORS`.
struct VectorFile {
    let root: JSONNode

    struct NotReadable: Error { let path: String }

    init(_ name: String) throws {
        let path = Vectors.path(name)
        guard let file = fopen(path, "r") else { throw NotReadable(path: path) }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk: [UInt8] = Array(repeating: 0, count: 1 << 16)
        while true {
            let count: Int = fread(&chunk, 1, chunk.count, file)
            if count == 0 { break }
            bytes += chunk[..<count]
        }
        root = try JSONDocument(parsing: bytes).root
    }

    /// Wycheproof's cases, each with its group.
    func cases() throws -> [VectorCase] {
        var all = [VectorCase]()
        let groups = try #require(root["testGroups"])
        for group in groups.elements {
            let tests = try #require(group["tests"])
            for test in tests.elements {
                all.append(VectorCase(node: test, group: group))
            }
        }
        #expect(Int64(all.count) == root["numberOfTests"]?.int64)
        return all
    }
}

/// One case: texts in hexadecimal are bytes.
struct VectorCase: CustomStringConvertible {
    let node: JSONNode
    let group: JSONNode

    var description: String { "case \(node["tcId"]?.int64 ?? 0)" }
    var result: String { node["result"]?.string ?? "" }

    func bytes(_ name: String) throws -> [UInt8] {
        let text = try #require((node[name] ?? group[name])?.string)
        return try #require(Hex.decode(text))
    }

    func secret(_ name: String) throws -> SecureBytes { SecureBytes(copying: try bytes(name)) }

    func number(_ name: String) throws -> Int {
        Int(try #require((node[name] ?? group[name])?.int64, "\(self) \(name)"))
    }
}

/// How many cases of a file were run. Skipped cases are counted under their reason.
struct VectorCount: Equatable, CustomStringConvertible {
    var valid = 0
    var refused = 0
    var skipped = [String: Int]()

    var description: String { "\(valid) give the value, \(refused) are refused, skipped \(skipped)" }
}

/// Expects the one error of everything that does not open: the same case and the same text.
func expectFailure(_ name: some CustomStringConvertible, _ body: () throws -> Void) {
    do {
        try body()
        Issue.record("\(name) opened")
    } catch {
        #expect(error as? CryptoError == .openingFailed, "\(name)")
        #expect("\(error)" == "the sealed bytes cannot be opened", "\(name)")
    }
}
