import ThicketNet
import ThicketProtocol
import ThicketServer

/// A client of the server.
class Peer {
    unowned let world: World
    let number: Int
    let account: Account
    /// The connection as the client sees it.
    final var link: Link?
    /// Microseconds; until then no messages pass, as if the network cable was unplugged.
    final var unreachableUntil: Int64 = 0

    init(_ world: World, _ number: Int, _ account: Account) {
        self.world = world
        self.number = number
        self.account = account
    }

    /// What the people of this account did.
    final var model: Model {
        get { world.models[account.number] }
        _modify { yield &world.models[account.number] }
    }

    func linkOpened() {}
    func linkReceived(_ text: [UInt8]) {}
    func linkClosed(code: UInt16?, _ detail: String) {}
    /// All faults end: an absent client comes back.
    func heal() { unreachableUntil = 0 }

    final func dial() {
        let link = Link(self)
        self.link = link
        link.dial()
    }

    final func hangUp() {
        let old = link
        link = nil
        old?.leave()
    }
}

/// One connection: two ordered directions, whose ends may disagree about whether it is open.
final class Link {
    private enum Item {
        case opened
        case text([UInt8])
        case closed(UInt16?, String)
    }

    private struct Way {
        /// Arrival time of the last message; later messages arrive after it.
        var freeAt: Int64 = 0
        var inFlight = 0
        /// How many of the messages in flight arrive; nil: all.
        var allowance: Int?

        mutating func cut(_ random: inout SimulationRandom) {
            allowance = min(allowance ?? .max, random.below(inFlight + 1))
        }
    }

    /// Microseconds until a server notices a client that is gone without a close.
    private static let idle: ClosedRange<Int64> = 60_000_000...120_000_000

    unowned let world: World
    let peer: Peer
    let serial: Int
    /// The server's identifier of it; nil before it is accepted and after it is closed.
    var id: ConnectionID?
    /// What the server sent on it, checked.
    let watch: Watch
    private var flights = InFlightChanges()
    /// The server reads nothing more at present.
    var isPaused = false
    private var held = [[UInt8]]()
    /// Until then the client reads nothing; microseconds.
    private var readsAgainAt: Int64 = 0
    /// Bytes sent to a client that does not read.
    private var unread = 0
    private var up = Way()
    private var down = Way()

    init(_ peer: Peer) {
        world = peer.world
        self.peer = peer
        world.lastConnection += 1
        serial = world.lastConnection
        watch = Watch(world, serial, peer.account)
    }

    /// Both ends consider it open, and no messages are in flight.
    var isQuiet: Bool {
        id != nil && up.allowance == nil && down.allowance == nil && up.inFlight == 0 && down.inFlight == 0
            && held.isEmpty
    }

    /// The client reads nothing for a while; messages to it wait at the server's end.
    func stopReading(for time: Int64) {
        world.record("stops reading", serial)
        readsAgainAt = world.now + time
        unread = 0
    }

    private func arrival(_ way: Way) -> Int64 {
        var time = world.now + world.random.delay(200, world.scenario.latency)
        if peer.unreachableUntil > time { time = peer.unreachableUntil + world.random.delay(200, 200_000) }
        return max(time, way.freeAt)
    }

    // MARK: - Opening

    func dial() {
        // A first packet that is lost for good: the client's timeout must end the attempt.
        if world.befalls(.lostDial) { return }
        world.agenda.at(arrival(up)) { [self] in
            guard peer.link === self else { return }
            guard world.server.accept(self) else {
                return world.after(world.random.delay(200, world.scenario.latency)) { [self] in
                    guard peer.link === self else { return }
                    peer.link = nil
                    peer.linkClosed(code: nil, "refused")
                }
            }
            sendDown(.opened)
        }
    }

    // MARK: - Messages

    /// A message from the client.
    func send(_ text: [UInt8]) {
        if Self.isChange(text) || Self.isIndex(text), let flaw = flights.sent(text) {
            world.problem("link \(serial): \(flaw)")
        }
        guard up.allowance == nil else { return }
        up.freeAt = arrival(up)
        up.inFlight += 1
        // Some clients send a change twice when an answer takes long.
        let count = Self.isChange(text) && world.befalls(.doubledRequest) ? 2 : 1
        world.agenda.at(up.freeAt) { [self] in
            up.inFlight -= 1
            if let allowance = up.allowance {
                guard allowance > 0 else { return }
                up.allowance = allowance - 1
            }
            for _ in 0..<count {
                if isPaused { held.append(text) } else { world.server.received(self, text) }
            }
        }
    }

    /// The client processes a message.
    func received(_ text: [UInt8]) {
        if Self.isChange(text) || Self.isIndex(text) { flights.received(text) }
    }

    /// The server reads again.
    func resume() {
        isPaused = false
        while !isPaused, !held.isEmpty { world.server.received(self, held.removeFirst()) }
    }

    /// A message from the server.
    /// - Returns: false when too many bytes wait for a client that does not read: the server must drop it.
    func answer(_ text: [UInt8]) -> Bool {
        sendDown(.text(text))
        guard readsAgainAt > world.now else { return true }
        unread += text.count
        return unread <= world.scenario.readerBytesMax
    }

    /// The server closes it after the messages that it has sent.
    func close(_ code: UInt16, _ reason: String) {
        id = nil
        sendDown(.closed(code, reason))
    }

    private func sendDown(_ item: Item) {
        guard down.allowance == nil else { return }
        down.freeAt = max(arrival(down), readsAgainAt)
        down.inFlight += 1
        world.agenda.at(down.freeAt) { [self] in
            down.inFlight -= 1
            if let allowance = down.allowance {
                guard allowance > 0 else { return }
                down.allowance = allowance - 1
            }
            guard peer.link === self else { return }
            switch item {
            case .opened: peer.linkOpened()
            case .text(let text):
                peer.linkReceived(text)
                if Self.isChange(text), world.befalls(.doubledAnswer) { peer.linkReceived(text) }
            case .closed(let code, let detail):
                peer.link = nil
                peer.linkClosed(code: code, detail)
            }
        }
    }

    /// `N:c:…`, in either direction.
    private static func isChange(_ text: [UInt8]) -> Bool { command(text, "c") }

    /// `N:i:…`, in either direction.
    private static func isIndex(_ text: [UInt8]) -> Bool { command(text, "i") }

    private static func command(_ text: [UInt8], _ name: String) -> Bool {
        let parts = text.prefix(16).split(separator: 0x3A, maxSplits: 2)
        return parts.count == 3 && parts[1].elementsEqual(name.utf8)
    }

    // MARK: - Ends

    /// The network loses it: some messages in flight arrive, and each side notices at a different time.
    func cut() {
        world.record("cut", serial)
        up.cut(&world.random)
        down.cut(&world.random)
        if world.random.chance(700) { notifyClient(within: 3_000_000) }
        notifyServer(within: world.random.chance(700) ? 0...3_000_000 : Self.idle)
    }

    /// The client closes it.
    func leave() {
        let isClean = up.allowance == nil && !world.befalls(100)
        if !isClean { up.cut(&world.random) }
        let last = max(up.freeAt - world.now, 0)
        notifyServer(within: isClean ? (last + 1)...(last + 100_000) : Self.idle)
    }

    /// The server's process has died.
    func serverDied() {
        id = nil
        held = []
        up.allowance = 0
        down.cut(&world.random)
        if world.random.chance(850) { notifyClient(within: 2_000_000) }
    }

    private func notifyClient(within most: Int64) {
        let least = max(down.freeAt - world.now, 0) + 1
        world.after(least + world.random.between(0, most)) { [self] in
            guard peer.link === self else { return }
            peer.link = nil
            peer.linkClosed(code: nil, "the connection was lost")
        }
    }

    private func notifyServer(within time: ClosedRange<Int64>) {
        world.after(world.random.between(time.lowerBound, time.upperBound)) { [self] in
            held = []
            world.server.lost(self)
        }
    }
}
