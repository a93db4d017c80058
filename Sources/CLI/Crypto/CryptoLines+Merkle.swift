import ThicketCrypto
import ThicketPlatform
import ThicketProtocol

/// Merkle trees of given leaves: their root, and proofs that are verified before they are returned.
extension CryptoLines {
    static func merkle(_ request: Request) throws -> JSONObject {
        var log = MerkleLog()
        var leaves = [Digest256]()
        for leaf in try request.list("leaves") {
            guard let data = leaf.stringValue.flatMap(Hex.decode) else {
                throw RequestError("a leaf is not hex")
            }
            leaves.append(MerkleTree.leafHash(data))
            log.append(MerkleTree.leafHash(data))
        }
        let root = log.root() ?? MerkleTree.emptyRoot
        var answer: JSONObject = ["root": .string(root.description)]
        if request.has("index") { answer["inclusion"] = try inclusion(request, leaves, log, root) }
        if request.has("size1") { answer["consistency"] = try consistency(request, log, root) }
        return answer
    }

    private static func inclusion(
        _ request: Request, _ leaves: [Digest256], _ log: MerkleLog, _ root: Digest256
    ) throws -> JSONValue {
        guard let index = try request.value("index").intValue.flatMap({ Int(exactly: $0) }),
            let proof = log.inclusionProof(index: index)
        else { throw RequestError("'index' is not a leaf of \(leaves.count)") }
        let isGood = MerkleTree.isIncluded(
            leaves[index], index: UInt64(index), size: UInt64(leaves.count), root: root, proof: proof)
        guard isGood else { throw RequestError("the proof that was made does not hold") }
        return hex(proof)
    }

    private static func consistency(_ request: Request, _ log: MerkleLog, _ root: Digest256) throws -> JSONValue {
        guard let size = try request.value("size1").intValue.flatMap({ Int(exactly: $0) }),
            let old = log.root(size: size), let proof = log.consistencyProof(oldSize: size)
        else { throw RequestError("'size1' is none of 1 to \(log.count)") }
        let isGood = MerkleTree.isConsistent(
            oldSize: UInt64(size), oldRoot: old, newSize: UInt64(log.count), newRoot: root, proof: proof)
        guard isGood else { throw RequestError("the proof that was made does not hold") }
        return hex(proof)
    }

    private static func hex(_ proof: [Digest256]) -> JSONValue { .array(proof.map { .string($0.description) }) }
}
