import ThicketCrypto
import ThicketProtocol

/// Trees of given leaves: their root, and proofs that were verified before they are told.
extension CryptoLines {
    static func merkle(_ request: Request) throws -> JSONObject {
        var log: MerkleLog = .init()
        var leaves: [Digest256] = []
        for leaf: JSONValue in try request.list("leaves") {
            guard let data: [UInt8] = leaf.stringValue.flatMap(Hex.decode) else {
                throw RequestError("a leaf is no hex")
            }
            leaves.append(MerkleTree.leafHash(data))
            log.append(MerkleTree.leafHash(data))
        }
        let root: Digest256 = log.root() ?? MerkleTree.emptyRoot
        var answer: JSONObject = ["root": .string(root.description)]
        if request.has("index") { answer["inclusion"] = try inclusion(request, leaves, log, root) }
        if request.has("size1") { answer["consistency"] = try consistency(request, log, root) }
        return answer
    }

    private static func inclusion(
        _ request: Request, _ leaves: [Digest256], _ log: MerkleLog, _ root: Digest256
    ) throws -> JSONValue {
        guard let index: Int = try request.value("index").intValue.flatMap({ Int(exactly: $0) }),
            let proof: [Digest256] = log.inclusionProof(index: index)
        else { throw RequestError("'index' is no leaf of \(leaves.count)") }
        let isGood: Bool = MerkleTree.isIncluded(
            leaves[index], index: UInt64(index), size: UInt64(leaves.count), root: root, proof: proof)
        guard isGood else { throw RequestError("the proof that was made does not hold") }
        return hex(proof)
    }

    private static func consistency(_ request: Request, _ log: MerkleLog, _ root: Digest256) throws -> JSONValue {
        guard let size: Int = try request.value("size1").intValue.flatMap({ Int(exactly: $0) }),
            let old: Digest256 = log.root(size: size), let proof: [Digest256] = log.consistencyProof(oldSize: size)
        else { throw RequestError("'size1' is none of 1 to \(log.count)") }
        let isGood: Bool = MerkleTree.isConsistent(
            oldSize: UInt64(size), oldRoot: old, newSize: UInt64(log.count), newRoot: root, proof: proof)
        guard isGood else { throw RequestError("the proof that was made does not hold") }
        return hex(proof)
    }

    private static func hex(_ proof: [Digest256]) -> JSONValue { .array(proof.map { .string($0.description) }) }
}
