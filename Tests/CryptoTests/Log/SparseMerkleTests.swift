import Testing
import ThicketCrypto
import ThicketTestSupport

@Suite("The map proves a key's value, or that it has none")
struct SparseMerkleTests {
    private static func key(_ name: String) -> Digest256 { .of(Array(name.utf8)) }

    @Test("an empty map has a root of zeros and proves that any key has no value")
    func empty() {
        let map = SparseMerkleMap()
        let key = Self.key("alice")
        #expect(map.root == .zero && map.count == 0 && map[key] == nil)
        #expect(map.proof(of: key).proves(key, nil, root: map.root))
        #expect(!map.proof(of: key).proves(key, .zero, root: map.root))
    }

    @Test("the root depends only on the keys and values, not on the order in which they came")
    func order() {
        var random = SeededRandom(seed: 7)
        let pairs = (0..<200).map { (Self.key("user \($0)"), Self.key("value \($0)")) }
        var roots = Set<Digest256>()
        for round in 0..<4 {
            var map = SparseMerkleMap()
            for (key, value) in round == 0 ? pairs : pairs.shuffled(using: &random) {
                // An older value, and then the final one.
                if round == 3 { map.set(key, to: .zero) }
                map.set(key, to: value)
            }
            #expect(map.count == 200)
            roots.insert(map.root)
        }
        #expect(roots.count == 1)
    }

    @Test("every key is proven with its value and no other, and every unknown key with none")
    func proofs() throws {
        var map = SparseMerkleMap()
        var roots = [Digest256]()
        for number in 0..<300 {
            map.set(Self.key("user \(number)"), to: Self.key("value \(number)"))
            roots.append(map.root)
        }
        for number in 0..<300 {
            let (key, value) = (Self.key("user \(number)"), Self.key("value \(number)"))
            let proof = map.proof(of: key)
            #expect(map[key] == value && proof.proves(key, value, root: map.root))
            #expect(!proof.proves(key, nil, root: map.root) && !proof.proves(key, .zero, root: map.root))
            #expect(!proof.proves(key, value, root: roots[298]) && SparseMerkleProof(proof.bytes) == proof)
            #expect(proof.bytes.count < 32 * 32)

            let outsider = Self.key("stranger \(number)")
            let none = map.proof(of: outsider)
            #expect(map[outsider] == nil && none.proves(outsider, nil, root: map.root))
            #expect(!none.proves(outsider, value, root: map.root) && !none.proves(key, nil, root: map.root))
            #expect(SparseMerkleProof(none.bytes) == none)
        }
    }

    @Test("a copy keeps its state and proves it while the map changes")
    func copies() {
        var map = SparseMerkleMap()
        let key = Self.key("alice")
        map.set(key, to: Self.key("first"))
        let older = map
        map.set(key, to: Self.key("second"))
        map.set(Self.key("bob"), to: Self.key("his"))
        #expect(older.count == 1 && older.proof(of: key).proves(key, Self.key("first"), root: older.root))
        #expect(map.proof(of: key).proves(key, Self.key("second"), root: map.root))
        #expect(!older.proof(of: key).proves(key, Self.key("first"), root: map.root))
    }

    @Test(
        "a removed key is as if it had never existed: the same root, proven to have no value, other keys as before"
    )
    func removal() throws {
        var random = SeededRandom(seed: 11)
        let keys = (0..<120).map { Self.key("user \($0)") }
        for _ in 0..<5 {
            let (gone, kept) = {
                let order = keys.shuffled(using: &random)
                return (order.prefix(60), order.dropFirst(60))
            }()
            var map = SparseMerkleMap()
            for key in keys.shuffled(using: &random) { map.set(key, to: key) }
            let before = map
            for key in gone { #expect(map.remove(key) == key) }
            var fresh = SparseMerkleMap()
            for key in kept { fresh.set(key, to: key) }
            #expect(map.root == fresh.root && map.count == 60)
            for key in gone {
                #expect(map[key] == nil && map.proof(of: key).proves(key, nil, root: map.root))
                #expect(!before.proof(of: key).proves(key, key, root: map.root))
                #expect(map.remove(key) == nil && map.count == 60, "a second time changes nothing")
            }
            for key in kept { #expect(map.proof(of: key).proves(key, key, root: map.root)) }
            #expect(before.count == 120 && gone.allSatisfy { before[$0] == $0 }, "a copy keeps what it had")
            for key in kept { map.remove(key) }
            #expect(map.root == .zero && map.count == 0)
        }
        let start = [UInt8](repeating: 0xA5, count: 31)
        let (left, right) = (
            try #require(Digest256(start + [0xA4])), try #require(Digest256(start + [0xA5]))
        )
        var deep = SparseMerkleMap()
        deep.set(left, to: .of([1]))
        let alone = deep.root
        deep.set(right, to: .of([2]))
        #expect(deep.remove(Self.key("stranger")) == nil && deep.remove(right) == .of([2]))
        #expect(deep.root == alone && deep.proof(of: left).bytes.count == 3, "256 levels went with it")
    }

    @Test("keys that differ only in the last bit are 256 levels deep, and are proven")
    func deepest() throws {
        let start = [UInt8](repeating: 0xA5, count: 31)
        let (left, right) = (
            try #require(Digest256(start + [0xA4])), try #require(Digest256(start + [0xA5]))
        )
        var map = SparseMerkleMap()
        map.set(left, to: .of([1]))
        map.set(right, to: .of([2]))
        for (key, value): (Digest256, Digest256) in [(left, .of([1])), (right, .of([2]))] {
            let proof = map.proof(of: key)
            #expect(proof.proves(key, value, root: map.root) && SparseMerkleProof(proof.bytes) == proof)
            // 255 empty neighbours are one bit each.
            #expect(proof.bytes.count == 3 + 32 + 32)
        }
    }

    @Test("the hashes of leaves and nodes are those of the documentation")
    func hashes() throws {
        let (low, high): (Digest256, Digest256) = (.zero, try #require(Digest256([UInt8](repeating: 0xFF, count: 32))))
        var map = SparseMerkleMap()
        map.set(low, to: .of([1]))
        let lowLeaf = Digest256.of([2] + low.bytes + Digest256.of([1]).bytes)
        #expect(map.root == lowLeaf)
        map.set(high, to: .of([2]))
        let highLeaf = Digest256.of([2] + high.bytes + Digest256.of([2]).bytes)
        #expect(map.root == .of([3] + lowLeaf.bytes + highLeaf.bytes))
    }

    @Test("every flipped bit of a proof, and every cut or longer one, is refused or proves nothing")
    func damage() {
        var map = SparseMerkleMap()
        for number in 0..<20 { map.set(Self.key("user \(number)"), to: Self.key("value \(number)")) }
        for (key, value) in [
            (Self.key("user 3"), Self.key("value 3")), (Self.key("nobody"), nil), (Self.key("no one"), nil),
        ] {
            let bytes = map.proof(of: key).bytes
            #expect(SparseMerkleProof(bytes)?.proves(key, value, root: map.root) == true)
            for bit in 0..<bytes.count * 8 {
                var changed = bytes
                changed[bit / 8] ^= 1 << UInt8(bit % 8)
                #expect(SparseMerkleProof(changed)?.proves(key, value, root: map.root) != true)
            }
            for count in 0..<bytes.count { #expect(SparseMerkleProof(Array(bytes.prefix(count))) == nil) }
            #expect(SparseMerkleProof(bytes + [0]) == nil)
        }
    }
}
