/// The members of a change object, found in one pass over its keys.
struct ChangeFields {
    private(set) var id: JSONNode?
    private(set) var ccid: JSONNode?
    private(set) var operation: JSONNode?
    private(set) var source: JSONNode?
    private(set) var diff: JSONNode?
    private(set) var object: JSONNode?
    private(set) var whole: JSONNode?
    /// Whether `o` is `M`, as in most changes.
    private(set) var isModification = false

    /// - Parameter node: an object.
    init(_ node: JSONNode) {
        let isPlain = node.storage.bytes.withUnsafeBufferPointer { bytes in
            bytes.baseAddress.map { read(node, $0) } ?? false
        }
        guard !isPlain else { return }
        // A key with escapes may be any of them.
        (id, ccid, operation) = (node["id"], node["ccid"], node["o"])
        (source, diff, object, whole) = (node["sv"], node["v"], node["d"], node["whole"])
        isModification = false
    }

    /// - Returns: false when a key contains escapes.
    private mutating func read(_ node: JSONNode, _ base: UnsafePointer<UInt8>) -> Bool {
        let storage = node.storage
        let tape = storage.tape
        let end = JSONTape.end(tape[node.index + 1])
        var key = node.index + 2
        while key < end {
            guard JSONTape.kind(tape[key]) == JSONTape.Kind.string else { return false }
            let name = base + JSONTape.offset(tape[key]) + 1
            switch JSONTape.length(tape[key]) - 2 {
            case 1: readLetter(name[0], storage, key + 1, base)
            case 2:
                if name[0] == UInt8(ascii: "i"), name[1] == UInt8(ascii: "d") {
                    id = JSONNode(storage: storage, index: key + 1)
                } else if name[0] == UInt8(ascii: "s"), name[1] == UInt8(ascii: "v") {
                    source = JSONNode(storage: storage, index: key + 1)
                }
            case 4:
                if name[0] == UInt8(ascii: "c"), name[1] == UInt8(ascii: "c"), name[2] == UInt8(ascii: "i"),
                    name[3] == UInt8(ascii: "d")
                {
                    ccid = JSONNode(storage: storage, index: key + 1)
                }
            case 5:
                if name[0] == UInt8(ascii: "w"), name[1] == UInt8(ascii: "h"), name[2] == UInt8(ascii: "o"),
                    name[3] == UInt8(ascii: "l"), name[4] == UInt8(ascii: "e")
                {
                    whole = JSONNode(storage: storage, index: key + 1)
                }
            default: break
            }
            key = JSONTape.next(tape, key + 1)
        }
        return true
    }

    private mutating func readLetter(
        _ letter: UInt8, _ storage: JSONStorage, _ index: Int, _ base: UnsafePointer<UInt8>
    ) {
        switch letter {
        case UInt8(ascii: "o"):
            operation = JSONNode(storage: storage, index: index)
            let word = storage.tape[index]
            isModification =
                JSONTape.kind(word) == JSONTape.Kind.string && JSONTape.length(word) == 3
                && base[JSONTape.offset(word) + 1] == UInt8(ascii: "M")
        case UInt8(ascii: "v"): diff = JSONNode(storage: storage, index: index)
        case UInt8(ascii: "d"): object = JSONNode(storage: storage, index: index)
        default: break
        }
    }
}
