import ThicketProtocol
import ThicketServer

/// One run: a server, its store, a network, clients and their people, all on one virtual clock.
///
/// Belongs to the task that runs it; runs share nothing.
final class World {
    /// Events of a storm, and of one day of one client, after which a run is given up: something goes round in circles.
    private static let eventsMax: (storm: Int, clientDay: Int) = (400_000, 60_000)

    let scenario: Scenario
    let agenda: Agenda = Agenda()
    var random: SimulationRandom
    var trace: Trace
    /// What went wrong; the first one ends the run.
    private(set) var problems: [String] = []
    /// From here on nothing new goes wrong and nobody edits.
    private(set) var isCalm: Bool = false
    let names: WorldNames
    let ledger: Ledger
    private var madeServer: SimulatedServer?
    private(set) var people: [SimulatedClient] = []
    private(set) var legacies: [LegacyClient] = []
    var lastConnection: Int = 0
    var tally: Tally = Tally()
    var model: Model = Model()
    /// When a client last sent anything but a heartbeat, microseconds.
    var lastWork: Int64 = 0

    init(_ scenario: Scenario, sink: (@Sendable (String) -> Void)?) throws {
        self.scenario = scenario
        random = SimulationRandom(seed: scenario.seed)
        trace = Trace(sink: sink)
        names = try WorldNames()
        ledger = Ledger(names)
    }

    /// Microseconds.
    var now: Int64 { agenda.now }
    /// Milliseconds, as clients count them.
    var milliseconds: Int64 { agenda.now / 1_000 }
    var peers: [Peer] { people + legacies }

    /// There from the beginning of the run on.
    var server: SimulatedServer {
        guard let madeServer: SimulatedServer else { preconditionFailure("the run has not begun") }
        return madeServer
    }

    func after(_ delay: Int64, _ body: @escaping () -> Void) { agenda.at(agenda.now + max(delay, 0), body) }

    func problem(_ text: String) {
        problems.append("at \(agenda.now / 1_000) ms: \(text)")
        trace.note(now, "PROBLEM", 0, Array(text.utf8))
    }

    func note(_ what: StaticString, _ who: Int, _ bytes: [UInt8] = []) { trace.note(now, what, who, bytes) }

    /// True with the rate of a fault, and never once the world is calm.
    func befalls(_ fault: Fault) -> Bool {
        guard befalls(scenario.faults[fault]) else { return false }
        tally.faults[fault] += 1
        return true
    }

    func befalls(_ perMille: Int) -> Bool { !isCalm && perMille > 0 && random.chance(perMille) }

    private var eventsMax: Int {
        let days: Int64 = scenario.duration / Scenario.day * Int64(scenario.clients + scenario.legacies)
        return World.eventsMax.storm + World.eventsMax.clientDay * Int(days)
    }

    // MARK: - The run

    /// Plays the scenario to its end.
    func run() throws {
        defer { agenda.clear() }
        madeServer = try SimulatedServer(self)
        server.start()
        for number: Int in 0..<scenario.clients { people.append(try SimulatedClient(joining: self, as: number)) }
        for number: Int in 0..<scenario.legacies {
            legacies.append(LegacyClient(self, scenario.clients + number))
        }
        for person: SimulatedClient in people { person.begin() }
        for legacy: LegacyClient in legacies { legacy.begin() }
        Weather(self).begin()
        play(until: scenario.duration)
        isCalm = true
        note("calm", 0)
        server.heal()
        for peer: Peer in peers { peer.heal() }
        Rest(self).check()
    }

    /// Adds a client that has never seen anything.
    func addFreshClient() throws -> SimulatedClient {
        let fresh: SimulatedClient = try SimulatedClient(joining: self, as: people.count + legacies.count)
        people.append(fresh)
        fresh.begin()
        return fresh
    }

    /// Lets time pass; stops early at the first problem.
    func play(until limit: Int64) {
        while problems.isEmpty, agenda.step(until: limit) {
            guard trace.events < eventsMax else {
                return problem("\(trace.events) events: it goes round in circles")
            }
        }
    }
}

/// How often what happened, for the summary of a run.
struct Tally: Sendable, Equatable {
    var edits: Int = 0
    var applied: Int = 0
    var refusals: [Int: Int] = [:]
    var faults: FaultCounts = FaultCounts()
    var walks: Int = 0
    var logCuts: Int = 0
    var messages: Int = 0

    mutating func add(_ other: Tally) {
        edits += other.edits
        applied += other.applied
        refusals.merge(other.refusals, uniquingKeysWith: +)
        faults.add(other.faults)
        walks += other.walks
        logCuts += other.logCuts
        messages += other.messages
    }
}

/// The names that all runs share.
struct WorldNames: Sendable {
    let app: AppID
    let user: UserID
    /// Nothing is removed here, so everything typed must be there at the end.
    let notes: BucketName
    /// Anything may happen here.
    let scratch: BucketName
    let token: String = "write-token"
    let readToken: String = "read-token"

    init() throws {
        app = try AppID("app")
        user = try UserID("ann@example.com")
        notes = try BucketName("notes")
        scratch = try BucketName("scratch")
    }

    var buckets: [BucketName] { [notes, scratch] }

    func id(_ bucket: BucketName) -> BucketID { BucketID(app: app, user: user, name: bucket) }
}
