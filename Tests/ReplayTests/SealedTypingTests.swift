import Testing
import ThicketProtocol
import ThicketSealed
import ThicketTestSupport

@testable import ThicketReplay

/// Does not encrypt: only the merge is tested here.
private struct NoSealer: Sealer {
    func seal(_ clear: [UInt8], kind: SealedHeader.Kind, id: [UInt8], position: Int, nonce: [UInt8]) -> [UInt8] {
        id + clear
    }

    func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])? {
        (id: Array(sealed.prefix(16)), clear: Array(sealed.dropFirst(16)))
    }
}

/// Recorded sessions typed into one sealed object: the server only orders, and every device, also a fresh one, ends in
/// the recorded text.
@Suite("Concurrent typing into a sealed object")
struct SealedTypingTests {
    private struct Player {
        let trace: Trace
        let sealer = NoSealer()
        var random: SeededRandom
        var carrier: TraceCarrier
        var devices: [SealedObject]
        /// Operations in order, with their author and how many edits that author had typed with each.
        var log = [(sealed: [UInt8], author: Int, typed: Int)]()
        var taken: [Int]
        var typed: [Int]
        var voids = 0
        let start: SealedLog

        /// - Parameter isReversed: true gives the last author the smallest id, false the first.
        init(_ trace: Trace, seed: UInt64, isReversed: Bool) throws {
            let agents = trace.agentCount
            self.trace = trace
            random = SeededRandom(seed: seed)
            carrier = try TraceCarrier(trace)
            let log = SealedLog(
                place: .init(owner: "o", app: "a", bucket: "b", serverKey: "k"), appKey: "note",
                incarnation: .init(repeating: 7, count: 16), object: ["text": .string(trace.startContent)])
            devices = (0..<agents).map { agent in
                SealedObject(author: .init(rawValue: UInt64(isReversed ? agents - agent : agent + 1)), log: log)
            }
            taken = .init(repeating: 0, count: agents)
            typed = .init(repeating: 0, count: agents)
            start = log
        }

        mutating func type(_ agent: Int) throws {
            guard typed[agent] < carrier.byAgent[agent].count else { return }
            let row = carrier.byAgent[agent][typed[agent]]
            let (needs, seen) = (carrier.needs(row), carrier.seen(by: agent))
            guard zip(needs, seen).allSatisfy({ $0 <= $1 }) else { return }
            for edit in carrier.type(row) {
                let length = devices[agent].object?["text"]?.stringValue?.utf16Length ?? 0
                try devices[agent].edit(ObjectDiff([(key: "text", operation: .text(edit.delta(length: length)))]))
            }
            typed[agent] += 1
        }

        mutating func send(_ agent: Int) {
            let id = (0..<16).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            guard let made = devices[agent].seal(changeID: id, nonce: [], with: sealer) else {
                // Edits that cancel each other out are never sent; they count as typed all the same.
                return
            }
            log.append((made.sealed, agent, typed[agent]))
        }

        mutating func receiveAll(_ agent: Int) {
            while taken[agent] < log.count {
                let (sealed, author, count) = log[taken[agent]]
                taken[agent] += 1
                let before = devices[agent].log.lastPositions[devices[author].author] ?? 0
                for event in devices[agent].receive(sealed, with: sealer) {
                    if case .rebased = event { voids += 1 }
                    if case .integrity(let integrity) = event { Issue.record("a false alarm: \(integrity)") }
                }
                let isCounted = devices[agent].log.lastPositions[devices[author].author] ?? 0 > before
                if isCounted, author != agent { carrier.saw(agent: agent, other: author, count: count) }
            }
        }

        mutating func play(pace: UInt64) throws {
            while typed.indices.contains(where: { typed[$0] < carrier.byAgent[$0].count }) {
                let agent: Int = Int(random.next() % UInt64(devices.count))
                switch random.next() % pace {
                case 0: send(agent)
                case 1: receiveAll(agent)
                default: try type(agent)
                }
            }
            for _ in 0..<4 {
                for agent in devices.indices { receiveAll(agent) }
                for agent in devices.indices { send(agent) }
            }
            for agent in devices.indices { receiveAll(agent) }
        }

        /// The text on every device, and on one that reads the log from its beginning.
        func ends() -> [String] {
            var fresh = SealedObject(author: .init(rawValue: 99), log: start)
            for entry in log { _ = fresh.receive(entry.sealed, with: sealer) }
            return (devices + [fresh]).map { $0.object?["text"]?.stringValue ?? "" }
        }
    }

    private func check(_ trace: Trace, seed: UInt64) throws {
        for isReversed in [false, true] {
            var player = try Player(trace, seed: seed, isReversed: isReversed)
            try player.play(pace: [3, 4, 5, 8, 16, 40][Int(seed % 6)])
            for (number, text) in player.ends().enumerated() {
                let place = zip(text.unicodeScalars, trace.endContent.unicodeScalars).prefix { $0 == $1 }.count
                #expect(
                    text.utf8.elementsEqual(trace.endContent.utf8),
                    "device \(number), seed \(seed), reversed \(isReversed): differs at \(place)")
            }
        }
    }

    @Test("a generated session ends in its recorded text, whichever author has the smaller id", arguments: [11, 12])
    func generated(seed: UInt64) throws {
        var generator = TraceGenerator(
            seed: seed,
            texts: ["One paragraph of words.\n\nAnother, with 🌲 and é.\n\nA third that is longer than both."])
        try check(generator.make(editsMin: 400), seed: seed)
    }

    @Test(
        "the beginning of two friends' recorded session ends in its recorded text",
        .enabled(if: Vectors.has("editing-traces")),
        arguments: UInt64(1)...UInt64(2))
    func friends(seed: UInt64) throws {
        try check(Trace(path: Vectors.path("editing-traces/friendsforever.json.gz")).prefix(2_500), seed: seed)
    }
}
