import Synchronization
import ThicketClient
import ThicketCrypto
import ThicketPlatform
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// Messages and answers of a server to a device: after a connection, its authorization and the bucket's options, each
/// line is a message of the socket, or behind `b` the answer to a batch, and behind `l` a page of children. The first
/// byte chooses the skeleton.
///
/// Whatever a server sends, nothing is shown that the account's devices have not sealed, and the store can be opened
/// again.
public func fuzzTreeMachine(_ bytes: [UInt8]) {
    guard let first = bytes.first, let store = try? TreeStore() else { return }
    var options = TreeOptions(SyncOptions(app: TreeScene.place.app, token: "token"))
    options.skeleton = first & 1 == 0 ? .full : .lazy(depth: 1)
    guard var machine = treeMachine(store, options) else { preconditionFailure("a new store opens") }
    var now = TreeTime(monotonic: 1_000, unix: 1_700_000_000_000)
    var sent = SentRequests()
    sent.add(
        machine.quietTurn(now) { machine throws(TreeError) in
            _ = try machine.create(at: TreePath(.home, names: [.fuzzed("a")]), content: .none)
            machine.goOnline()
        })
    sent.add(machine.quietTurn(now) { machine throws(TreeError) in try machine.opened() })
    let lines =
        [Array("0:auth:ann".utf8), Array(#"0:o:{"mode":"tree","store":"s"}"#.utf8)]
        + bytes.dropFirst().split(separator: 0x0A).map { Array($0) }
    for line in lines {
        now = TreeTime(monotonic: now.monotonic + 100, unix: now.unix + 100)
        sent.add(
            machine.quietTurn(now) { machine throws(TreeError) in
                try receive(line, &sent, &machine)
                machine.tick()
            })
    }
    checkShown(store)
    precondition(treeMachine(store, options) != nil, "the store opens again")
}

private func receive(_ line: [UInt8], _ sent: inout SentRequests, _ machine: inout TreeMachine) throws(TreeError) {
    let rest = Array(line.dropFirst())
    switch line.first {
    case UInt8(ascii: "b"):
        guard let id = sent.batch, let answer = try? TreeBatchAnswer(parsing: rest) else { return }
        try machine.batchAnswered(id, .answer(answer))
    case UInt8(ascii: "l"):
        guard let number = sent.list, let page = try? ChildrenPage(parsing: rest) else { return }
        try machine.childrenListed(number, .page(page))
    default: try machine.received(ServerBatch([line]))
    }
}

/// What the machine has asked for last.
private struct SentRequests {
    var batch: BatchID?
    var list: Int64?

    mutating func add(_ actions: [TreeAction]) {
        for action in actions {
            switch action {
            case .batch(let id, _): batch = id
            case .children(let number, _): list = number
            default: break
            }
        }
    }
}

private func treeMachine(_ store: TreeStore, _ options: TreeOptions) -> TreeMachine? {
    // The same bytes have the same effect: keys, ids and nonces come from a seed.
    let source = SeededBytes()
    return try? TreeMachine(
        store: store, keys: TreeScene.keys, options: options,
        treeRandom: TreeRandom(secret: { SecureBytes(copying: source.next($0)) }, bytes: { source.next($0) }),
        random: FixedGenerator())
}

private func checkShown(_ store: TreeStore) {
    var places = Trunk.allCases.map { NodeParent.trunk($0) }
    while let place = places.popLast() {
        for row in (try? store.children(of: place, order: .name, offset: 0, limit: 100)) ?? [] {
            // A name that is taken gets a number.
            let name = row.name?.text.prefix { $0 != " " } ?? ""
            precondition(TreeScene.names.contains(String(name)), "only sealed names are shown")
            places.append(.node(row.id))
        }
    }
}

/// Bytes that repeat in every run.
private final class SeededBytes: Sendable {
    private let count = Atomic<UInt64>(0)

    func next(_ length: Int) -> [UInt8] {
        let number = count.wrappingAdd(1, ordering: .relaxed).newValue
        return Array(Hash.sha512(withUnsafeBytes(of: number.bigEndian) { Array($0) }).prefix(length))
    }
}

private struct FixedGenerator: RandomNumberGenerator, Sendable {
    private var count: UInt64 = 1

    mutating func next() -> UInt64 {
        count = count &* 6_364_136_223_846_793_005 &+ 1
        return count
    }
}

extension NodeName {
    fileprivate static func fuzzed(_ text: String) -> NodeName {
        guard let name = try? NodeName(text) else { preconditionFailure("a name") }
        return name
    }
}
