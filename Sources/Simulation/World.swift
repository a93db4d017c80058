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
    /// By the account's number.
    var models: [Model]
    /// When a client last sent anything but a heartbeat, microseconds.
    var lastWork: Int64 = 0

    init(_ scenario: Scenario, sink: (@Sendable (String) -> Void)?) throws {
        self.scenario = scenario
        random = SimulationRandom(seed: scenario.seed)
        trace = Trace(sink: sink)
        names = try WorldNames(accounts: scenario.accounts)
        models = names.accounts.map { Model(account: $0.number) }
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

    /// As `befalls`, for what counts itself when it happens.
    func isStruck(by fault: Fault) -> Bool { befalls(scenario.faults[fault]) }

    func befalls(_ perMille: Int) -> Bool { !isCalm && perMille > 0 && random.chance(perMille) }

    private var eventsMax: Int {
        let days: Int64 = scenario.duration / Scenario.day * Int64(scenario.clients + scenario.legacies)
        return World.eventsMax.storm + World.eventsMax.clientDay * Int(days)
    }

    // MARK: - The run

    /// Plays the scenario to its end.
    func run() throws {
        // People know the world that knows them: without this it would stay, and its disks with it.
        defer {
            agenda.clear()
            // As do a peer and its link.
            for peer: Peer in peers { peer.link = nil }
            (people, legacies, madeServer) = ([], [], nil)
        }
        madeServer = try SimulatedServer(self)
        server.start()
        for number: Int in 0..<scenario.clients {
            people.append(try SimulatedClient(joining: self, as: number, of: account(number)))
        }
        for number: Int in 0..<scenario.legacies {
            let number: Int = scenario.clients + number
            legacies.append(LegacyClient(self, number, account(number)))
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

    /// Adds clients that have never seen anything, one for each account.
    func addFreshClients() throws {
        for account: Account in names.accounts {
            let number: Int = people.count + legacies.count
            let fresh: SimulatedClient = try SimulatedClient(joining: self, as: number, of: account)
            people.append(fresh)
            fresh.begin()
        }
    }

    /// Whose the client of this number is, of those that are there from the beginning.
    private func account(_ number: Int) -> Account { names.accounts[number % names.accounts.count] }

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
    /// Changes that were decided beside the shard.
    var decidedElsewhere: Int = 0
    var messages: Int = 0

    mutating func add(_ other: Tally) {
        edits += other.edits
        applied += other.applied
        refusals.merge(other.refusals, uniquingKeysWith: +)
        faults.add(other.faults)
        walks += other.walks
        logCuts += other.logCuts
        decidedElsewhere += other.decidedElsewhere
        messages += other.messages
    }
}

/// A user of an app, with whom no other shares anything.
struct Account: Sendable {
    let number: Int
    let app: AppID
    let user: UserID

    var token: String { "write-token-\(number)" }
    var readToken: String { "read-token-\(number)" }
}

/// The names in a run.
struct WorldNames: Sendable {
    let accounts: [Account]
    /// Nothing is removed here, so everything typed must be there at the end.
    let notes: BucketName
    /// Anything may happen here.
    let scratch: BucketName

    /// Two users of one app, then the first one's name in another app; all with the same buckets and keys.
    init(accounts count: Int) throws {
        let owners: [(app: String, user: String)] = [
            ("app", "ann@example.com"), ("app", "bob@example.com"), ("other", "ann@example.com"),
        ]
        accounts = try owners.prefix(max(1, count)).enumerated().map { (number, owner) in
            Account(number: number, app: try AppID(owner.app), user: try UserID(owner.user))
        }
        notes = try BucketName("notes")
        scratch = try BucketName("scratch")
    }

    /// Most accounts that a run may have.
    static let accountsMax: Int = 3

    var buckets: [BucketName] { [notes, scratch] }
    var ids: [BucketID] { accounts.flatMap { account in buckets.map { id($0, of: account) } } }

    func id(_ bucket: BucketName, of account: Account) -> BucketID {
        BucketID(app: account.app, user: account.user, name: bucket)
    }
}
