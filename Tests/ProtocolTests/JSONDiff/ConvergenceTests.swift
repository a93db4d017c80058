import Testing
import ThicketTestSupport

@testable import ThicketProtocol

/// A server that puts changes into one order, and clients that hold one change in flight and later edits: only the
/// rules of this module, no I/O.
private struct Model {
    struct Client {
        /// The state that client and server both know, and its version.
        var ghost: JSONObject
        var version = 0
        /// Sent, not yet seen in the server's order; then the edits made since.
        var pending: ObjectDiff?
        var later = ObjectDiff()
        var local: JSONObject
    }

    private(set) var state: JSONObject
    private(set) var log = [(author: Int, change: ObjectDiff)]()
    /// States by version, to rebase on.
    private var states: [JSONObject]
    /// Sent, not yet at the server: at most one per client.
    private var wire: [(author: Int, base: Int, change: ObjectDiff)?]
    var clients: [Client]

    init(clients count: Int, state: JSONObject) {
        self.state = state
        states = [state]
        wire = Array(repeating: nil, count: count)
        clients = Array(repeating: Client(ghost: state, local: state), count: count)
    }

    /// Makes a user's edit.
    mutating func edit(_ client: Int, by change: ObjectDiff) throws {
        guard let both = try? JSONDiff.compose(clients[client].later, change) else { return }
        clients[client].later = both
        clients[client].local = try JSONDiff.apply(change, to: clients[client].local)
    }

    mutating func send(_ client: Int) {
        guard clients[client].pending == nil, !clients[client].later.isEmpty else { return }
        clients[client].pending = clients[client].later
        wire[client] = (client, clients[client].version, clients[client].later)
        clients[client].later = ObjectDiff()
    }

    /// The server accepts a client's change: rebased over everything it had not seen, as the later arrival.
    mutating func receive(_ client: Int) throws {
        guard let (author, base, sent) = wire[client] else { return }
        wire[client] = nil
        var change = sent
        for version in base..<log.count {
            change = try JSONDiff.transform(
                change, over: log[version].change, base: states[version], rule: .exact(tie: .after))
        }
        state = try JSONDiff.apply(change, to: state)
        log.append((author, change))
        states.append(state)
    }

    /// A client applies the next change of the server's order.
    mutating func deliver(_ client: Int) throws {
        var it = clients[client]
        guard it.version < log.count else { return }
        let (author, change) = log[it.version]
        if author == client {
            #expect(it.pending == change, "the acknowledged change is the one that the client holds")
            it.pending = nil
            it.ghost = try JSONDiff.apply(change, to: it.ghost)
        } else {
            let pending = it.pending ?? ObjectDiff()
            let sent = try JSONDiff.apply(pending, to: it.ghost)
            let overPending = try JSONDiff.transform(
                change, over: pending, base: it.ghost, rule: .exact(tie: .before))
            let overLater = try JSONDiff.transform(
                overPending, over: it.later, base: sent, rule: .exact(tie: .before))
            it.later = try JSONDiff.transform(it.later, over: overPending, base: sent, rule: .exact(tie: .after))
            if it.pending != nil {
                it.pending = try JSONDiff.transform(pending, over: change, base: it.ghost, rule: .exact(tie: .after))
            }
            it.local = try JSONDiff.apply(overLater, to: it.local)
            it.ghost = try JSONDiff.apply(change, to: it.ghost)
        }
        it.version += 1
        clients[client] = it
    }

    var isQuiet: Bool {
        clients.allSatisfy { $0.pending == nil && $0.later.isEmpty && $0.version == log.count }
    }

    mutating func settle() throws {
        for _ in 0..<1_000 where !isQuiet {
            for client in clients.indices {
                send(client)
                try receive(client)
                while clients[client].version < log.count { try deliver(client) }
            }
        }
        #expect(isQuiet)
    }
}

@Suite("Many clients, one order")
struct ConvergenceTests {
    @Test("concurrent typing converges, and no character is lost, doubled or brought back", arguments: 0..<300)
    func typing(_ seed: Int) throws {
        var random = SeededRandom(seed: UInt64(seed))
        var next: UInt16 = 0x4E00
        func fresh(_ count: Int) -> [UInt16] {
            defer { next += UInt16(count) }
            return (0..<count).map { next + UInt16($0) }
        }
        let start = fresh(8)
        var alive = Set(start)
        var model = Model(
            clients: 2 + random.below(3), state: ["s": .string(String(decoding: start, as: UTF16.self))])
        for _ in 0..<60 {
            let client: Int = random.below(model.clients.count)
            switch random.below(7) {
            case 0, 1, 2:
                let text: [UInt16] = Array(try #require(model.clients[client].local["s"]?.stringValue).utf16)
                var delta = TextDelta()
                var place = 0
                for operation in random.delta(length: text.count).operations {
                    switch operation {
                    case .retain(let count):
                        delta.retain(count)
                        place += count
                    case .delete(let count):
                        delta.delete(count)
                        alive.subtract(text[place..<(place + count)])
                        place += count
                    case .insert(let units):
                        let typed = fresh(units.count)
                        alive.formUnion(typed)
                        delta.insert(typed)
                    }
                }
                if !delta.isIdentity { try model.edit(client, by: .init([(key: "s", operation: .text(delta))])) }
            case 3: model.send(client)
            case 4: try model.receive(client)
            default: try model.deliver(client)
            }
        }
        try model.settle()
        for client in model.clients {
            #expect(client.local == model.state && client.ghost == model.state)
        }
        let text: [UInt16] = Array(try #require(model.state["s"]?.stringValue).utf16)
        #expect(Set(text) == alive)
        #expect(text.count == alive.count)
    }

    @Test("edits of all kinds converge", arguments: 0..<300)
    func anything(_ seed: Int) throws {
        var random = SeededRandom(seed: UInt64(10_000 + seed))
        var model = Model(clients: 2 + random.below(3), state: random.object(depth: 2))
        for _ in 0..<40 {
            let client: Int = random.below(model.clients.count)
            switch random.below(6) {
            case 0, 1: try model.edit(client, by: random.diff(of: model.clients[client].local))
            case 2: model.send(client)
            case 3: try model.receive(client)
            default: try model.deliver(client)
            }
        }
        try model.settle()
        for client in model.clients {
            #expect(client.local == model.state && client.ghost == model.state)
        }
    }
}
