import Testing
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTestSupport

@Suite(
    "Proofs of the log against the published cases", .enabled(if: Vectors.has("rfc6962"), "needs the rfc6962 vectors"))
struct MerkleVectorTests {
    @Test("every inclusion proof is accepted or refused as published")
    func inclusion() throws {
        let cases = try #require(Vectors.json("rfc6962/inclusion.json").arrayValue)
        #expect(cases.count == 98)
        for each in cases {
            let isTaken = try {
                // A text that is not a hash is refused before anything is hashed.
                guard let root = try root(each, "root"),
                    let leaf = Digest256(try each.base64("leafHash")),
                    let proof = try proof(each)
                else { return false }
                return MerkleTree.isIncluded(
                    leaf, index: try each.unsigned("leafIdx"), size: try each.unsigned("treeSize"), root: root,
                    proof: proof)
            }()
            let name = try each.text("file")
            #expect(isTaken == (each["wantErr"]?.boolValue == false), "\(name)")
        }
    }

    @Test("every consistency proof is accepted or refused as published")
    func consistency() throws {
        let cases = try #require(Vectors.json("rfc6962/consistency.json").arrayValue)
        #expect(cases.count == 98)
        for each in cases {
            let isTaken = try {
                guard let old = try root(each, "root1"),
                    let new = try root(each, "root2"), let proof = try proof(each)
                else { return false }
                return MerkleTree.isConsistent(
                    oldSize: try each.unsigned("size1"), oldRoot: old, newSize: try each.unsigned("size2"),
                    newRoot: new, proof: proof)
            }()
            let name = try each.text("file")
            #expect(isTaken == (each["wantErr"]?.boolValue == false), "\(name)")
        }
    }

    @Test("roots and proofs of the tree of eight leaves are the published ones, byte for byte")
    func eight() throws {
        let file = try Vectors.json("rfc6962/tree8.json")
        var log = MerkleLog()
        for leaf in try file.list("leaves_hex") {
            log.append(MerkleTree.leafHash(try #require(leaf.stringValue.flatMap(Hex.decode))))
        }
        for (size, root) in try file.list("roots_hex").enumerated() {
            #expect(log.root(size: size)?.description == root.stringValue)
        }
        let (inclusion, consistency) = (
            try file.list("inclusion"), try file.list("consistency")
        )
        #expect(inclusion.count == 36 && consistency.count == 36)
        for each in inclusion {
            let made = log.inclusionProof(index: try each.int("index"), size: try each.int("size"))
            #expect(made?.map(\.description) == (try each.list("proof").map(\.stringValue)))
        }
        for each in consistency {
            let made = log.consistencyProof(
                oldSize: try each.int("size1"), newSize: try each.int("size2"))
            #expect(made?.map(\.description) == (try each.list("proof").map(\.stringValue)))
        }
    }

    /// Some of the published roots are words, which represent any root: their hash is used.
    private func root(_ each: JSONValue, _ name: String) throws -> Digest256? {
        let bytes = try each.base64(name)
        return Digest256(bytes) ?? .of(bytes)
    }

    private func proof(_ each: JSONValue) throws -> [Digest256]? {
        let hashes = try (each["proof"]?.arrayValue ?? []).map {
            Digest256(try #require(Base64.decode(Array(($0.stringValue ?? "").utf8)[...])))
        }
        return hashes.contains(nil) ? nil : hashes.compactMap(\.self)
    }
}
