import ThicketAuth
import ThicketCrypto
import ThicketNet
import ThicketPlatform
import ThicketProtocol

/// The thread of the built-in accounts: owns their directory and hashes passwords, one at a time. A storm of logins
/// takes at most one core and 16 MiB, and neither the network loop nor partners' users wait for it.
final class ServerAccounts: Sendable {
    /// A request and the connection that gets the answer.
    struct Asked: Sendable {
        let connection: ConnectionID
        let route: AccountRoute
        let request: HTTPRequest
        /// The client's address, as text.
        let address: String
        /// Header fields added to every answer.
        let fields: [HTTPField]
    }

    struct Answered: Sendable {
        let connection: ConnectionID
        let response: HTTPResponse
        /// The user whose tokens have ended; its connections must be closed.
        let ended: Tenant.Name?
    }

    /// Requests that may wait; one more is answered 503. At 25 logins a second none waits for longer than 11 s.
    static let queuedMax = 256

    private enum Work: Sendable {
        case ask(Asked)
        case rules(AccountService.Rules)
    }

    private let queue = BlockingQueue<Work>(bound: queuedMax)
    private let thread: OwnThread

    /// - Parameters:
    ///   - addresses: failed logins by address, counted together with those of partners' users.
    ///   - open: opens the directory; called on the thread, again after each failure.
    ///   - now: milliseconds since 1970.
    ///   - report: called on the thread after each answer.
    init(
        rules: AccountService.Rules, secrets: AccountSecrets, addresses: SharedMeter, metrics: Metrics, log: Log,
        now: @escaping @Sendable () -> Int64, open: @escaping @Sendable () throws -> any AccountDirectory,
        outbox: @escaping @Sendable () -> (any MailOutbox)?, report: @escaping @Sendable (Answered) -> Void
    ) {
        let queue = self.queue
        let runner = Runner(
            rules: rules, secrets: secrets, addresses: addresses, metrics: metrics, log: log, now: now, open: open,
            outbox: outbox)
        thread = OwnThread("accounts") {
            while !queue.isOver {
                for work in queue.takeAll() {
                    switch work {
                    case .ask(let asked):
                        report(runner.answer(asked))
                        runner.sendCode()
                    case .rules(let rules): runner.use(rules)
                    }
                }
            }
        }
    }

    /// Queues a request.
    /// - Returns: false when too many wait.
    func push(_ asked: Asked) -> Bool { queue.add(.ask(asked)) }

    /// Sets other rules for requests queued from now on.
    /// - Returns: false when too many requests wait; the next reload sets the rules then.
    @discardableResult
    func use(_ rules: AccountService.Rules) -> Bool { queue.add(.rules(rules)) }

    /// Answers everything queued and ends.
    func finish() {
        queue.close()
        thread.join()
    }

    /// The body of the thread.
    private final class Runner: @unchecked Sendable {
        // Used on the thread only, after `init`.
        private var rules: AccountService.Rules
        private let secrets: AccountSecrets
        private let addresses: SharedMeter
        private let metrics: Metrics
        private let log: Log
        private let now: @Sendable () -> Int64
        private let open: @Sendable () throws -> any AccountDirectory
        private let outbox: @Sendable () -> (any MailOutbox)?
        /// The user that is sent a code next.
        private var forgetful: AccountService.Forgetful?
        private var service: AccountService?

        init(
            rules: AccountService.Rules, secrets: AccountSecrets, addresses: SharedMeter, metrics: Metrics, log: Log,
            now: @escaping @Sendable () -> Int64, open: @escaping @Sendable () throws -> any AccountDirectory,
            outbox: @escaping @Sendable () -> (any MailOutbox)?
        ) {
            self.outbox = outbox
            (self.rules, self.secrets, self.addresses, self.metrics) = (rules, secrets, addresses, metrics)
            (self.log, self.now, self.open) = (log, now, open)
        }

        func use(_ rules: AccountService.Rules) {
            self.rules = rules
            service?.rules = rules
        }

        func answer(_ asked: Asked) -> Answered {
            do {
                if service == nil {
                    service = AccountService(
                        directory: try open(), secrets: secrets, rules: rules, addresses: addresses,
                        random: RandomBytes.make)
                }
            } catch {
                log.error("accounts.unavailable", ["error": .text("\(error)")])
            }
            guard
                let outcome = service?.answer(
                    asked.request, to: asked.route, from: asked.address, now: Double(now()) / 1_000)
            else {
                return Answered(
                    connection: asked.connection, response: AccountAnswer.unavailable(asked.route).adding(asked.fields),
                    ended: nil)
            }
            count(outcome)
            forgetful = outcome.forgetful
            return Answered(
                connection: asked.connection, response: outcome.response.adding(asked.fields),
                ended: outcome.ended.map { Tenant.Name(app: asked.route.app, user: $0) })
        }

        /// Sends the code that the previous request asked for.
        func sendCode() {
            guard let forgetful else { return }
            self.forgetful = nil
            guard let outbox = outbox() else { return }
            do throws(DirectoryError) {
                let isSent =
                    try service?.sendCode(to: forgetful, outbox: outbox, now: Double(now()) / 1_000) ?? false
                if isSent { metrics.mails.add(1, .sent) }
            } catch {
                metrics.mails.add(1, .failed)
                log.error("accounts.mail_failed", ["error": .text(error.description)])
            }
        }

        private func count(_ outcome: AccountService.Outcome) {
            if let isProved = outcome.isProved { metrics.logins.add(1, isProved ? .good : .wrong) }
            if let limit = outcome.limit { metrics.limitHits.add(1, Metrics.LimitName(limit)) }
            guard let failure = outcome.failure else { return }
            // The service and its counts of attempts stay: SQLite recovers by itself when the disk does.
            log.error("accounts.failed", ["error": .text(failure.description)])
        }
    }
}

extension Metrics.LimitName {
    init(_ limit: AccountLimit) {
        self =
            switch limit {
            case .keys: .accountKeys
            case .tokens: .accountTokens
            case .address: .accountAddress
            case .account: .accountName
            case .prelogins: .prelogins
            case .registrations: .registrations
            case .pairings: .pairings
            case .userTokens: .userTokens
            case .guests: .guests
            }
    }
}

extension AccountService.Rules {
    init(_ config: ServerConfig) {
        self.init()
        failuresPerMinute = config.failedLoginsPerMinute
        registrationsPerMinute = config.registrationsPerMinute
        guestsPerAccountMax = config.guestsPerAccountMax
        let seconds = Double(config.tokenLifetime.wholeMilliseconds) / 1_000
        tokenLifetime = seconds > 0 ? seconds : nil
    }
}
