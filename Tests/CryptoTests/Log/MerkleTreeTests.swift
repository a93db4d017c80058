import Testing
import ThicketCrypto
import ThicketTestSupport

@Suite("The log proves its content and nothing else")
struct MerkleTreeTests {
    private static func log(_ count: Int) -> MerkleLog {
        var log = MerkleLog()
        for number in 0..<count { log.append(leaf(number)) }
        return log
    }

    private static func leaf(_ number: Int) -> Digest256 { MerkleTree.leafHash(Array("leaf \(number)".utf8)) }

    /// The definition of RFC 6962, 2.1, word for word.
    private static func defined(_ leaves: ArraySlice<Digest256>) -> Digest256 {
        guard let first = leaves.first else { return MerkleTree.emptyRoot }
        guard leaves.count > 1 else { return first }
        var half = 1
        while half * 2 < leaves.count { half *= 2 }
        return MerkleTree.nodeHash(defined(leaves.prefix(half)), defined(leaves.dropFirst(half)))
    }

    @Test("the root of every size is that of the definition")
    func roots() {
        let leaves = (0..<67).map(Self.leaf)
        let log = Self.log(67)
        for size in 0...67 { #expect(log.root(size: size) == Self.defined(leaves[..<size])) }
        #expect(log.root() == log.root(size: 67) && log.root(size: 68) == nil && log.root(size: -1) == nil)
    }

    @Test("every leaf of every size is proven, and the proof fits no other place, size, leaf or root")
    func inclusion() throws {
        let log = Self.log(33)
        for size in 1...33 {
            let root = try #require(log.root(size: size))
            for index in 0..<size {
                let proof = try #require(log.inclusionProof(index: index, size: size))
                func isTaken(
                    _ leaf: Int, _ index: Int, _ size: Int, _ root: Digest256, _ proof: [Digest256]
                ) -> Bool {
                    MerkleTree.isIncluded(
                        Self.leaf(leaf), index: UInt64(index), size: UInt64(size), root: root, proof: proof)
                }
                #expect(isTaken(index, index, size, root, proof))
                #expect(!isTaken(index + 1, index, size, root, proof))
                #expect(!isTaken(index, index ^ 1, size, root, proof) || size == 1)
                #expect(!isTaken(index, index, size, .zero, proof))
                #expect(!isTaken(index, index, size, root, proof + [.zero]))
                #expect(proof.isEmpty || !isTaken(index, index, size, root, proof.dropLast()))
                #expect(!isTaken(index, size, size, root, proof) && !isTaken(index, index, 0, root, proof))
            }
        }
        #expect(log.inclusionProof(index: 33) == nil && log.inclusionProof(index: -1) == nil)
        #expect(log.inclusionProof(index: 0, size: 34) == nil)
    }

    @Test("every older size is proven to be the beginning of every newer one, and of no other")
    func consistency() throws {
        let log = Self.log(33)
        for newSize: Int in 1...33 {
            for oldSize: Int in 1...newSize {
                let proof = try #require(log.consistencyProof(oldSize: oldSize, newSize: newSize))
                let (old, new) = (
                    try #require(log.root(size: oldSize)), try #require(log.root(size: newSize))
                )
                func isTaken(_ oldSize: Int, _ old: Digest256, _ new: Digest256, _ proof: [Digest256]) -> Bool {
                    MerkleTree.isConsistent(
                        oldSize: UInt64(oldSize), oldRoot: old, newSize: UInt64(newSize), newRoot: new, proof: proof)
                }
                #expect(isTaken(oldSize, old, new, proof))
                #expect(!isTaken(oldSize, .zero, new, proof) && !isTaken(oldSize, old, .zero, proof))
                #expect(!isTaken(oldSize, old, new, proof + [.zero]))
                #expect(proof.isEmpty || !isTaken(oldSize, old, new, proof.dropLast()))
                #expect(!isTaken(0, MerkleTree.emptyRoot, new, proof) && !isTaken(0, MerkleTree.emptyRoot, new, []))
                for place in proof.indices {
                    var changed = proof
                    changed[place] = .of(changed[place].bytes)
                    #expect(!isTaken(oldSize, old, new, changed))
                }
            }
        }
        #expect(log.consistencyProof(oldSize: 0) == nil && log.consistencyProof(oldSize: 34) == nil)
    }

    @Test("numbers at the end of 64 bits and proofs of any length are refused and do not trap")
    func extremes() {
        let many = [Digest256](repeating: .zero, count: 70)
        for count: Int in [0, 1, 63, 64, 65, 66, 70] {
            for (index, size): (UInt64, UInt64) in [
                (.max, .max), (.max - 1, .max), (0, .max), (.max, 0), (1 << 63, .max),
            ] {
                #expect(
                    !MerkleTree.isIncluded(
                        .zero, index: index, size: size, root: .zero, proof: Array(many.prefix(count))))
                #expect(
                    !MerkleTree.isConsistent(
                        oldSize: index, oldRoot: .zero, newSize: size, newRoot: .of([]),
                        proof: Array(many.prefix(count))))
            }
        }
    }

    @Test("a proof is read as it was written; half a hash, or too many, is refused")
    func bytes() throws {
        let proof = try #require(Self.log(21).inclusionProof(index: 17))
        let bytes = MerkleTree.bytes(of: proof)
        #expect(MerkleTree.proof(bytes) == proof && MerkleTree.proof([]) == [])
        #expect(MerkleTree.proof(bytes + [0]) == nil && MerkleTree.proof(bytes.dropLast()) == nil)
        #expect(MerkleTree.proof(.init(repeating: 0, count: 32 * 66)) == nil)
    }
}
