import ThicketProtocol

/// A client like the older libraries: one change in flight per object, the same ccid when it is sent again, local edits
/// found by comparison with the ghost and rebased by the reference's rules. It keeps its state while the network comes
/// and goes; its program is never killed.
class LegacyClient: Peer {
    /// The behaviour in which legacy clients differ.
    enum Habit: Int {
        /// Sends `cv` after each index, as iOS does.
        case asksAfterIndex = 0
        /// Continues from the index.
        case continues
    }

    let habit: Habit
    private var channels = [LegacyChannel]()
    private var beat: Int64 = 0
    private var lastReceived: Int64 = 0
    private var generation = 0
    private var attempts = 0

    override init(_ world: World, _ number: Int, _ account: Account) {
        habit = Habit(rawValue: number % 2) ?? .continues
        super.init(world, number, account)
        channels = world.names.buckets.filter { !world.names.isSealed($0) }.enumerated().map {
            LegacyChannel(self, $0.offset, $0.element)
        }
    }

    var isSynced: Bool { channels.allSatisfy(\.isSynced) && (link?.isQuiet ?? false) }

    func begin() {
        connect()
        actLater()
    }

    private func actLater() {
        let pace = world.scenario.pace * (world.scenario.isDays ? 60 : 1)
        world.after(world.random.between(pace / 10, pace * 3)) { [self] in
            guard !world.isCalm else { return }
            act()
            actLater()
        }
    }

    private func act() {
        let isNotes = world.random.chance(500)
        let bucket = isNotes ? world.names.notes : world.names.scratch
        guard let channel = channels.first(where: { $0.bucket == bucket }) else { return }
        if !isNotes, world.random.chance(15) { return channel.empty() }
        if isNotes, world.random.chance(500) { return type(channel) }
        guard let key = try? EntityKey(isNotes ? "old" : "thing\(world.random.below(5))") else { return }
        if !isNotes, world.random.chance(100) { return channel.edit(key, to: nil) }
        channel.edit(key, to: model.scribbled(channel.local(key) ?? JSONObject(), &world.random))
    }

    /// Types one character into the shared text.
    private func type(_ channel: LegacyChannel) {
        guard let key = try? EntityKey("mixed"), var object = channel.local(key),
            let text = object["t"]?.stringValue, model.hasRoom(key),
            let marker = model.markers.next()
        else { return }
        var scalars = Array(text.unicodeScalars)
        scalars.insert(marker, at: world.random.below(scalars.count + 1))
        var longer = ""
        longer.unicodeScalars.append(contentsOf: scalars)
        object["t"] = .string(longer)
        channel.edit(key, to: object)
        model.typed(key, [marker])
    }

    // MARK: - Connection

    private func connect() {
        generation += 1
        world.record("legacy connects", number)
        let generation: Int = generation
        dial()
        world.after(30_000_000) { [self] in
            if self.generation == generation, lastReceived < world.now - 29_000_000 { lose() }
        }
    }

    private func lose() {
        hangUp()
        comeBack()
    }

    private func comeBack() {
        generation += 1
        let generation: Int = generation
        for channel in channels { channel.closed() }
        attempts += 1
        let pause: Int64 = min(8_000_000, 200_000 << Int64(min(attempts, 6)))
        world.after(world.random.between(pause / 2, pause)) { [self] in if self.generation == generation { connect() } }
    }

    override func linkOpened() {
        lastReceived = world.now
        for channel in channels { channel.open() }
        keepAlive(generation)
    }

    private func keepAlive(_ generation: Int) {
        world.after(20_000_000) { [self] in
            guard self.generation == generation, link != nil else { return }
            guard lastReceived > world.now - 45_000_000 else { return lose() }
            send(.heartbeat(beat))
            keepAlive(generation)
        }
    }

    override func linkReceived(_ text: [UInt8]) {
        world.record("legacy <", number, text)
        link?.received(text)
        lastReceived = world.now
        guard let message = try? ServerMessage(parsing: text) else {
            return world.problem("legacy \(number): a message cannot be read")
        }
        switch message {
        case .heartbeat(let count): beat = count &+ 1
        case .log: break
        case .channel(let number, let reply):
            guard Int(number) < channels.count else { return }
            attempts = 0
            channels[Int(number)].received(reply)
        }
    }

    override func linkClosed(code: UInt16?, _ detail: String) {
        world.record("legacy lost", number)
        comeBack()
    }

    /// The server does not open a bucket, or does not answer: start again.
    func startAgain() { if link != nil { lose() } }

    func send(_ message: ClientMessage) { link?.send(message.encoded()) }

    /// What it shows; nil: nothing.
    func local(_ bucket: BucketName, _ key: EntityKey) -> JSONObject? {
        channels.first { $0.bucket == bucket }?.local(key)
    }

    func compare(_ bucket: BucketName, _ objects: [EntityKey: (version: Version, body: [UInt8])]) {
        channels.first { $0.bucket == bucket }?.compare(objects)
    }
}
