import ThicketClient
import ThicketProtocol
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// Short messages from one account to another: until the sender has the confirmation, and until the receiver shows
/// them; beside a change of a bucket until its author has the confirmation.
func messagesBeside(count: Int, rounds: Int = 5) async throws -> [Figure] {
    let stand = try PeopleStand()
    let ann = try await stand.person("ann@example.com")
    let bucket = try await ann.desk.session.bucket("b")
    let text = Array(String(repeating: "words ", count: 20).utf8)
    var run = MessageRun()
    let synapse = SynapsePeer()
    for round in 0..<rounds {
        // One account sends another one at most 100 messages a minute.
        let bob = try await stand.person("bob\(round)@example.com")
        // The keys are looked up once.
        try await send(text, from: ann, to: bob)
        let requests = try stand.metric("thicket_http_requests_total", label: "rest")
        for _ in 0..<count {
            let (acknowledged, visible) = try await send(text, from: ann, to: bob)
            run.messages.acknowledged.append(acknowledged)
            run.messages.visible.append(visible)
        }
        run.requests.append(
            Double(try stand.metric("thicket_http_requests_total", label: "rest") - requests) / Double(count))
        for number in 0..<count {
            let start = nanoseconds()
            try await bucket.set("key-\(round)-\(number)", to: ["text": .string("words")])
            try await bucket.waitUntilSynced(timeout: .seconds(60))
            run.changes.acknowledged.append(Double(nanoseconds() - start) / 1e6)
        }
        run.close()
        if let synapse { run.synapse.append(try synapse.run()) }
        await bob.desk.session.close()
        progress("people: messages, round \(round + 1) of \(rounds)")
    }
    await ann.desk.session.close()
    return run.figures
}

/// The samples of the rounds.
private struct MessageRun {
    struct Times {
        var acknowledged = [Double]()
        var visible = [Double]()
    }

    var messages = Times()
    var changes = Times()
    var requests = [Double]()
    var synapse = [SynapsePeer.Times]()
    private var acknowledged = [(p50: Double, p99: Double)]()
    private var visible = [(p50: Double, p99: Double)]()
    private var plain = [(p50: Double, p99: Double)]()

    mutating func close() {
        acknowledged.append(Self.quantiles(messages.acknowledged))
        visible.append(Self.quantiles(messages.visible))
        plain.append(Self.quantiles(changes.acknowledged))
        (messages, changes) = (Times(), Times())
    }

    private static func quantiles(_ times: [Double]) -> (p50: Double, p99: Double) {
        let sorted = times.sorted()
        return (quantile(sorted, 0.5), quantile(sorted, 0.99))
    }

    /// Beside Synapse, round by round.
    private var besideSynapse: [Figure] {
        guard !synapse.isEmpty else { return [] }
        return [
            Figure(name: "Synapse: a message, confirmed: p50", samples: synapse.map(\.acknowledged), unit: "ms"),
            Figure(name: "  p99", samples: synapse.map(\.acknowledgedP99), unit: "ms"),
            Figure(
                name: "  our p50 beside it", samples: zip(acknowledged, synapse).map { $0.p50 / $1.acknowledged },
                unit: "", goal: .atMost(1)),
            Figure(name: "Synapse: a message, at the receiver: p50", samples: synapse.map(\.visible), unit: "ms"),
            Figure(name: "  p99", samples: synapse.map(\.visibleP99), unit: "ms"),
            Figure(
                name: "  our p50 beside it", samples: zip(visible, synapse).map { $0.p50 / $1.visible }, unit: "",
                goal: .atMost(1)),
        ]
    }

    var figures: [Figure] {
        [
            Figure(name: "a change of a bucket, confirmed: p50", samples: plain.map(\.p50), unit: "ms"),
            Figure(name: "  p99", samples: plain.map(\.p99), unit: "ms"),
            Figure(name: "a message, confirmed at the sender: p50", samples: acknowledged.map(\.p50), unit: "ms"),
            Figure(name: "  p99", samples: acknowledged.map(\.p99), unit: "ms"),
            Figure(
                name: "  ratio of the p50", samples: zip(acknowledged, plain).map { $0.p50 / $1.p50 }, unit: "",
                goal: .atMost(3)),
            Figure(name: "a message, shown at the receiver: p50", samples: visible.map(\.p50), unit: "ms"),
            Figure(name: "  p99", samples: visible.map(\.p99), unit: "ms"),
            Figure(
                name: "  ratio of the p50", samples: zip(visible, plain).map { $0.p50 / $1.p50 }, unit: "",
                goal: .atMost(3)),
            Figure(name: "requests for a message", samples: requests, unit: "", goal: .atMost(1)),
        ] + besideSynapse
    }
}

/// Sends a signal, a content without a node in the sender's tree.
///
/// - Returns: milliseconds until the sender knows that it was delivered, and until the receiver shows it.
@discardableResult
private func send(
    _ text: [UInt8], from ann: PeopleStand.Person, to bob: PeopleStand.Person
) async throws -> (acknowledged: Double, visible: Double) {
    let (sent, received) = (await ann.desk.tree.events, await bob.desk.tree.events)
    let start = nanoseconds()
    let message = try await ann.desk.tree.messages.signal(to: [bob.user], content: NodeContent(data: text))
    async let acknowledged = moment(sent) { if case .delivered(let id, _) = $0 { id == message.node } else { false } }
    async let visible = moment(received) {
        if case .discovered(let node, _) = $0 { node.id == message.node } else { false }
    }
    return (Double(try await acknowledged - start) / 1e6, Double(try await visible - start) / 1e6)
}

/// When an event came.
private func moment(
    _ events: AsyncStream<TreeEvent>, _ isWanted: @Sendable (TreeEvent) -> Bool
) async throws -> UInt64 {
    for await event in events where isWanted(event) { return nanoseconds() }
    throw BenchError("the tree was closed")
}

/// A large file to many people, beside the same file for the own tree only: the bytes that the devices send.
func fileToMany(mebibytes: Int, people count: Int) async throws -> [Figure] {
    let stand = try PeopleStand()
    let ann = try await stand.person("ann@example.com")
    var friends = [PeopleStand.Person]()
    for number in 0..<count { friends.append(try await stand.person("friend\(number)@example.com")) }
    let receivers = Set(friends.map(\.user))
    // The keys are looked up before.
    let content = NodeContent(data: Array("hello".utf8))
    try await ann.desk.tree.messages.signal(to: receivers, content: content)
    try await ann.desk.awaitSync()
    var bytes = [UInt8](repeating: 0, count: mebibytes << 20)
    for place in bytes.indices { bytes[place] = UInt8(truncatingIfNeeded: place &* 2_654_435_761 >> 11) }
    var before = try stand.metric("thicket_received_bytes_total")
    try await ann.desk.tree.createNode(at: TreePath(.home, ["film.mp4"]), data: .bytes(bytes))
    try await ann.desk.awaitSync()
    let alone = try stand.metric("thicket_received_bytes_total") - before
    // Other bytes: the sender's device sends the content of a node that it copies only once.
    for place in bytes.indices { bytes[place] ^= 0x55 }
    before = try stand.metric("thicket_received_bytes_total")
    let start = nanoseconds()
    let sent = try await ann.desk.tree.messages.send(
        to: receivers, content: NodeSections(data: .bytes(Array("see the film".utf8))),
        attachments: [(name: try NodeName("film.mp4"), content: NodeSections(data: .bytes(bytes)))])
    try await ann.desk.awaitSync()
    let seconds = Double(nanoseconds() - start) / 1e9
    let more = try stand.metric("thicket_received_bytes_total") - before - alone
    let delivered = try await ann.desk.tree.messages.deliveries(of: sent.node).filter { $0.delivered != nil }.count
    guard delivered == count else { throw BenchError("\(delivered) of \(count) people have the file") }
    await ann.desk.session.close()
    for friend in friends { await friend.desk.session.close() }
    return [
        Figure(name: "\(mebibytes) MiB to \(count) people, until all have it", value: seconds, unit: "s"),
        Figure(
            name: "  bytes sent for the own tree only, beside the \(mebibytes) MiB",
            value: Double(alone - (mebibytes << 20)) / 1_024, unit: "KiB"),
        Figure(
            name: "  bytes more for \(count) people, all devices", value: Double(more) / 1_024, unit: "KiB",
            goal: .atMost(100)),
    ]
}
