import ThicketAuth
import ThicketCrypto
import ThicketProtocol

/// The thread that answers the requests of partners' apps: it owns their directory, so that neither its disk nor its
/// hashing ever keeps the network loop.
final class ServerAccess: Sendable {
    /// A request, and who waits for the answer.
    struct Asked: Sendable {
        let connection: ConnectionID
        let route: PartnerService.Route
        let request: HTTPRequest
        /// Of the client, as text.
        let address: String
    }

    struct Answered: Sendable {
        let connection: ConnectionID
        let response: HTTPResponse
    }

    /// What the thread is made with.
    struct Settings: Sendable {
        var rules: TokenRules = .init()
        var registrationsPerMinute: Int = PartnerService.registrationsPerMinute
    }

    /// Requests that wait; one more is answered 503.
    static let queuedMax: Int = 1_024

    private enum Work: Sendable {
        case ask(Asked)
        case settings(Settings)
    }

    private let queue: WaitingRow<Work> = .init(bound: queuedMax)
    private let thread: OwnThread

    /// - Parameters:
    ///   - open: gives the directory; called on the thread, again after each failure.
    ///   - now: milliseconds since 1970.
    ///   - report: called on the thread after each answer.
    init(
        settings: Settings, metrics: Metrics, log: Log, now: @escaping @Sendable () -> Int64,
        open: @escaping @Sendable () throws -> any PartnerDirectory, report: @escaping @Sendable (Answered) -> Void
    ) {
        let queue: WaitingRow<Work> = self.queue
        let runner: Runner = .init(settings: settings, metrics: metrics, log: log, now: now, open: open)
        thread = OwnThread("access") {
            while !queue.isOver {
                for work: Work in queue.takeAll() {
                    switch work {
                    case .ask(let asked):
                        report(Answered(connection: asked.connection, response: runner.answer(asked)))
                    case .settings(let settings): runner.use(settings)
                    }
                }
            }
        }
    }

    /// Hands over a request.
    /// - Returns: false when too many wait.
    func push(_ asked: Asked) -> Bool { queue.add(.ask(asked)) }

    /// Other rules for the requests that are handed over from now on.
    /// - Returns: false when too many requests wait: then they are for the next reload.
    @discardableResult
    func use(_ settings: Settings) -> Bool { queue.add(.settings(settings)) }

    /// Answers what has been handed over and ends.
    func finish() {
        queue.close()
        thread.join()
    }

    /// The body of the thread.
    private final class Runner: @unchecked Sendable {
        // Touched on the thread only, but for its making before the thread starts.
        private var settings: Settings
        private let metrics: Metrics
        private let log: Log
        private let now: @Sendable () -> Int64
        private let open: @Sendable () throws -> any PartnerDirectory
        private var service: PartnerService?

        init(
            settings: Settings, metrics: Metrics, log: Log, now: @escaping @Sendable () -> Int64,
            open: @escaping @Sendable () throws -> any PartnerDirectory
        ) {
            (self.settings, self.metrics, self.log, self.now, self.open) = (settings, metrics, log, now, open)
        }

        func use(_ settings: Settings) {
            self.settings = settings
            service?.verifier.rules = settings.rules
            service?.registrationsPerMinute = settings.registrationsPerMinute
        }

        func answer(_ asked: Asked) -> HTTPResponse {
            do {
                if service == nil {
                    service = PartnerService(
                        directory: try open(), rules: settings.rules,
                        registrationsPerMinute: settings.registrationsPerMinute, random: RandomBytes.make)
                }
            } catch {
                log.error("access.unavailable", ["error": .text("\(error)")])
            }
            guard
                let outcome: PartnerService.Outcome = service?.answer(
                    asked.request, to: asked.route, from: asked.address, now: Double(now()) / 1_000)
            else { return PartnerAnswer.unavailable }
            count(outcome, asked)
            return outcome.response
        }

        private func count(_ outcome: PartnerService.Outcome, _ asked: Asked) {
            switch outcome.refusal {
            case .denied(let reason)?:
                metrics.tokens.add(1, .denied)
                if log.writes(.debug) {
                    log.debug(
                        "access.denied", ["session": .text("\(asked.connection)"), "reason": .text(reason.rawValue)])
                }
            case .expired?: metrics.tokens.add(1, .expired)
            case nil:
                if let failure: DirectoryError = outcome.failure {
                    log.error("access.failed", ["error": .text(failure.description)])
                    service = nil
                } else if outcome.response.status == 429 {
                    metrics.limitHits.add(1, .attempts)
                } else {
                    metrics.tokens.add(1, .good)
                }
            }
        }
    }
}

extension ServerAccess.Settings {
    init(_ config: ServerConfig) {
        rules.expiryLeeway = Double(config.tokenLeeway.wholeMilliseconds) / 1_000
        registrationsPerMinute = config.registrationsPerMinute
    }
}
