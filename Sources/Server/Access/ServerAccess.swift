import Synchronization
import ThicketAuth
import ThicketCrypto
import ThicketNet
import ThicketPlatform
import ThicketProtocol

/// The thread that answers requests of partners' apps and checks the tokens of their users. It owns their
/// directory, so that neither its disk nor its hashing delays the network loop. Passwords are hashed on a second
/// thread, one at a time: a storm of logins takes at most one core and 16 MiB, and tokens do not wait for it.
final class ServerAccess: Sendable {
    /// A request and the connection that gets the answer.
    struct Asked: Sendable {
        let connection: ConnectionID
        let route: PartnerService.Route
        let request: HTTPRequest
        /// The client's address, as text.
        let address: String
        /// Header fields added to every answer.
        let fields: [HTTPField]
    }

    /// What is reported to the loop.
    enum Answered: Sendable {
        case response(ConnectionID, HTTPResponse)
        case admission(AdmissionRequest, AdmissionAnswer)
        case revoked(Revocation)
    }

    /// Settings of the thread.
    struct Settings: Sendable {
        var rules = TokenRules()
        var registrationsPerMinute = PartnerService.registrationsPerMinute
        var failedLoginsPerMinute = PartnerService.failedLoginsPerMinute
    }

    /// Requests that may wait; one more is answered 503.
    static let queuedMax = 1_024
    /// Requests about passwords that may wait; one more is answered 503. At 25 a second none waits for longer than
    /// 11 s.
    static let costlyQueuedMax = 256
    /// Tokens of `init` messages that may wait, and their bytes; the connection of one more is closed.
    static let admissionsMax = 65_536
    static let admissionBytesMax = 64 << 20
    /// Commands of the loop that may wait.
    private static let ordersMax = 4_096
    /// Nanoseconds between two checks for disabled partners: their connections end within a second.
    private static let lookNanoseconds: Int64 = 250_000_000

    private enum Work: Sendable {
        case ask(Asked)
        case admit(AdmissionRequest, address: String)
        case deny([DeniedToken])
        case settings(Settings)
    }

    /// What is waiting now.
    private struct Waiting: Sendable {
        var requests = 0
        var costly = 0
        var admissions = 0
        var admissionBytes = 0
    }

    private let queue = BlockingQueue<Work>(bound: queuedMax + admissionsMax + ordersMax)
    private let costly = BlockingQueue<Work>(bound: costlyQueuedMax + ordersMax)
    private let waiting = Mutex<Waiting>(.init())
    private let report: @Sendable (Answered) -> Void
    private let threads = Mutex<[OwnThread]>([])

    /// - Parameters:
    ///   - addresses: failed logins by address, counted together with those of built-in accounts.
    ///   - open: opens the directory; called once on each of the two threads, again after each failure.
    ///   - outbox: takes messages to users; called on a thread, each time one is sent.
    ///   - now: milliseconds since 1970.
    ///   - report: called on the thread after each answer, and by `admit` when too many tokens wait.
    init(
        settings: Settings, addresses: SharedMeter, metrics: Metrics, log: Log,
        now: @escaping @Sendable () -> Int64,
        open: @escaping @Sendable () throws -> any PartnerDirectory,
        outbox: @escaping @Sendable () -> (any MailOutbox)?,
        report: @escaping @Sendable (Answered) -> Void
    ) {
        self.report = report
        // Attempts on one thread count on the other.
        let attempts = PartnerAttempts(
            registrationsPerMinute: settings.registrationsPerMinute, addresses: addresses)
        let runners = (0..<2).map { _ in
            Runner(
                settings: settings, attempts: attempts, metrics: metrics, log: log, now: now, open: open,
                outbox: outbox)
        }
        let started = [
            OwnThread("access") { [unowned self] in run(runners[0]) },
            OwnThread("passwords") { [unowned self] in runCostly(runners[1]) },
        ]
        threads.withLock { $0 = started }
    }

    /// Queues a request.
    /// - Returns: false when too many wait.
    func push(_ asked: Asked) -> Bool {
        let isCostly = PartnerService.isCostly(asked.route)
        let hasRoom = waiting.withLock { waiting in
            guard isCostly ? waiting.costly < Self.costlyQueuedMax : waiting.requests < Self.queuedMax else {
                return false
            }
            if isCostly { waiting.costly += 1 } else { waiting.requests += 1 }
            return true
        }
        return hasRoom && (isCostly ? costly : queue).add(.ask(asked))
    }

    /// Queues a token. The result is reported, `busy` when too many wait.
    /// - Parameter address: of the client, as text.
    func admit(_ request: AdmissionRequest, from address: String) {
        let bytes = request.token.utf8.count
        let hasRoom = waiting.withLock { waiting in
            guard waiting.admissions < Self.admissionsMax, waiting.admissionBytes + bytes <= Self.admissionBytesMax
            else { return false }
            waiting.admissions += 1
            waiting.admissionBytes += bytes
            return true
        }
        guard hasRoom, queue.add(.admit(request, address: address)) else {
            return report(.admission(request, .busy))
        }
    }

    /// Denies these tokens from now on.
    func deny(_ tokens: [DeniedToken]) { queue.add(.deny(tokens)) }

    /// Sets other rules for requests queued from now on.
    /// - Returns: false when too much waits; the next reload sets the rules then.
    @discardableResult
    func use(_ settings: Settings) -> Bool {
        let isQueued = costly.add(.settings(settings))
        return queue.add(.settings(settings)) && isQueued
    }

    /// Answers everything queued and ends.
    func finish() {
        queue.close()
        costly.close()
        let threads = self.threads.withLock { $0 }
        for thread in threads { thread.join() }
    }

    private func run(_ runner: Runner) {
        while !queue.isOver {
            let deadline: Duration? =
                runner.hasAdmitted ? .nanoseconds(SystemClock.monotonic() + Self.lookNanoseconds) : nil
            for work in queue.takeAll(until: deadline) { perform(work, runner) }
            for partner in runner.disabledPartners() { report(.revoked(.partner(partner))) }
        }
    }

    private func runCostly(_ runner: Runner) {
        while !costly.isOver {
            for work in costly.takeAll() { perform(work, runner) }
        }
    }

    private func perform(_ work: Work, _ runner: Runner) {
        switch work {
        case .ask(let asked):
            let isCostly = PartnerService.isCostly(asked.route)
            waiting.withLock { waiting in if isCostly { waiting.costly -= 1 } else { waiting.requests -= 1 } }
            let outcome = runner.answer(asked)
            // Before the answer, so that its receiver finds the revoked connections ending.
            if let revocation = outcome?.revocation { report(.revoked(revocation)) }
            let response = (outcome?.response ?? PartnerAnswer.unavailable).adding(asked.fields)
            report(.response(asked.connection, response))
            if let forgetful = outcome?.forgetful { runner.sendCode(to: forgetful) }
        case .admit(let request, let address):
            waiting.withLock { waiting in
                waiting.admissions -= 1
                waiting.admissionBytes -= request.token.utf8.count
            }
            report(.admission(request, runner.admit(request, from: address)))
        case .deny(let tokens): runner.deny(tokens)
        case .settings(let settings): runner.use(settings)
        }
    }

    /// The body of the thread.
    private final class Runner: @unchecked Sendable {
        // Used on the thread only, after `init`.
        private var settings: Settings
        private let attempts: PartnerAttempts
        private let metrics: Metrics
        private let log: Log
        private let now: @Sendable () -> Int64
        private let open: @Sendable () throws -> any PartnerDirectory
        private let outbox: @Sendable () -> (any MailOutbox)?
        private var service: PartnerService?
        /// The directory must be opened again.
        private var isFailed = false

        init(
            settings: Settings, attempts: PartnerAttempts, metrics: Metrics, log: Log,
            now: @escaping @Sendable () -> Int64,
            open: @escaping @Sendable () throws -> any PartnerDirectory,
            outbox: @escaping @Sendable () -> (any MailOutbox)?
        ) {
            (self.settings, self.attempts, self.metrics, self.log) = (settings, attempts, metrics, log)
            (self.now, self.open, self.outbox) = (now, open, outbox)
        }

        func use(_ settings: Settings) {
            self.settings = settings
            service?.verifier.rules = settings.rules
            service?.registrationsPerMinute = settings.registrationsPerMinute
            service?.failedLoginsPerMinute = settings.failedLoginsPerMinute
        }

        /// Whether any partner's token was good since the start.
        private(set) var hasAdmitted = false
        /// When disabled partners were last looked up, nanoseconds.
        private var lookedAt = Int64.min

        /// - Returns: nil when the directory cannot be opened.
        func answer(_ asked: Asked) -> PartnerService.Outcome? {
            prepare()
            guard
                let outcome = service?.answer(
                    asked.request, to: asked.route, from: asked.address, now: seconds)
            else { return nil }
            if let refusal = outcome.refusal {
                count(refusal, of: asked.connection)
            } else if let failure = outcome.failure {
                fail(failure)
            } else if outcome.response.status == 429 {
                metrics.limitHits.add(1, .attempts)
            } else {
                metrics.tokens.add(1, .good)
            }
            return outcome
        }

        /// A failure is logged; the user asks again.
        func sendCode(to forgetful: PartnerService.Forgetful) {
            guard let outbox = outbox() else { return }
            do throws(DirectoryError) {
                let isSent = try service?.sendCode(to: forgetful, outbox: outbox, now: seconds) ?? false
                if isSent { metrics.mails.add(1, .sent) }
            } catch {
                metrics.mails.add(1, .failed)
                log.error("access.mail_failed", ["error": .text(error.description)])
            }
        }

        func admit(_ request: AdmissionRequest, from address: String) -> AdmissionAnswer {
            prepare()
            let admission = service?.admit(
                request.token, device: request.device, app: request.app.text, from: address, now: seconds)
            switch admission {
            case .admitted(let pass)?:
                metrics.tokens.add(1, .good)
                hasAdmitted = true
                return .admitted(pass)
            case .refused(let refusal)?:
                count(refusal, of: request.origin.connection)
                return .refused(refusal)
            case .tooMany(let seconds)?: return .tooMany(seconds: seconds)
            case .failed(let failure)?:
                fail(failure)
                return .unavailable
            case nil: return .unavailable
            }
        }

        /// A failure is logged; the tokens then end only at their own time.
        func deny(_ tokens: [DeniedToken]) {
            prepare()
            do throws(DirectoryError) {
                try service?.directory.deny(tokens, now: seconds)
            } catch {
                fail(error)
            }
        }

        /// Partners disabled since the last check; checked a few times a second at most.
        func disabledPartners() -> [String] {
            let moment = SystemClock.monotonic()
            guard hasAdmitted, moment >= lookedAt &+ ServerAccess.lookNanoseconds else { return [] }
            lookedAt = moment
            prepare()
            do throws(DirectoryError) {
                return try service?.directory.disabledPartners() ?? []
            } catch {
                fail(error)
                return []
            }
        }

        private var seconds: Double { Double(now()) / 1_000 }

        /// Opens the directory, for the first time or again; the counts of attempts stay.
        private func prepare() {
            guard service == nil || isFailed else { return }
            do {
                let directory = try open()
                isFailed = false
                service?.directory = directory
                guard service == nil else { return }
                service = PartnerService(
                    directory: directory, rules: settings.rules, attempts: attempts, random: RandomBytes.make)
            } catch {
                log.error("access.unavailable", ["error": .text("\(error)")])
            }
        }

        private func fail(_ failure: DirectoryError) {
            log.error("access.failed", ["error": .text(failure.description)])
            isFailed = true
        }

        private func count(_ refusal: TokenRefusal, of connection: ConnectionID) {
            switch refusal {
            case .denied(let reason):
                metrics.tokens.add(1, .denied)
                guard log.writes(.debug) else { return }
                log.debug("access.denied", ["session": .text("\(connection)"), "reason": .text(reason.rawValue)])
            case .expired: metrics.tokens.add(1, .expired)
            }
        }
    }
}

extension ServerAccess.Settings {
    init(_ config: ServerConfig) {
        rules.expiryLeeway = Double(config.tokenLeeway.wholeMilliseconds) / 1_000
        registrationsPerMinute = config.registrationsPerMinute
        failedLoginsPerMinute = config.failedLoginsPerMinute
    }
}
