import ThicketAuth
import ThicketCrypto
import ThicketNet
import ThicketPlatform
import ThicketProtocol

/// The thread that answers requests about keys. It owns their store, so that neither a disk nor a proof delays the
/// network loop, and look-ups do not wait for passwords that are hashed.
final class ServerKeyLog: Sendable {
    /// A request and the connection that gets the answer.
    struct Asked: Sendable {
        let connection: ConnectionID
        let route: KeyLogRoute
        let request: HTTPRequest
        /// The client's address, as text.
        let address: String
        /// Header fields added to every answer.
        let fields: [HTTPField]
    }

    struct Answered: Sendable {
        let connection: ConnectionID
        let response: HTTPResponse
    }

    /// Requests that may wait; one more is answered 503.
    static let queuedMax = 4_096

    private let queue = BlockingQueue<Asked>(bound: queuedMax)
    private let thread: OwnThread

    /// - Parameters:
    ///   - partners: opens the directory of partners; nil without partners.
    ///   - now: milliseconds since 1970.
    ///   - report: called on the thread after each answer.
    init(
        access: KeyLogAccess, partners: (@Sendable () throws -> any PartnerDirectory)?, rules: TokenRules,
        metrics: Metrics, log: Log, now: @escaping @Sendable () -> Int64,
        report: @escaping @Sendable (Answered) -> Void
    ) {
        let queue = self.queue
        let runner = Runner(access: access, partners: partners, rules: rules, metrics: metrics, log: log, now: now)
        thread = OwnThread("keylog") {
            while !queue.isOver {
                for asked in queue.takeAll() { report(runner.answer(asked)) }
                runner.keepHeads()
            }
        }
    }

    /// Queues a request.
    /// - Returns: false when too many wait.
    func push(_ asked: Asked) -> Bool { queue.add(asked) }

    /// Answers everything queued and ends.
    func finish() {
        queue.close()
        thread.join()
    }

    /// The body of the thread.
    private final class Runner: @unchecked Sendable {
        // Used on the thread only, after `init`.
        private let access: KeyLogAccess
        private let partners: (@Sendable () throws -> any PartnerDirectory)?
        private let rules: TokenRules
        private let metrics: Metrics
        private let log: Log
        private let now: @Sendable () -> Int64
        private var service: KeyLogService?

        init(
            access: KeyLogAccess, partners: (@Sendable () throws -> any PartnerDirectory)?, rules: TokenRules,
            metrics: Metrics, log: Log, now: @escaping @Sendable () -> Int64
        ) {
            (self.access, self.partners, self.rules) = (access, partners, rules)
            (self.metrics, self.log, self.now) = (metrics, log, now)
        }

        func answer(_ asked: Asked) -> Answered {
            var response: HTTPResponse
            do throws(KeyLogService.Refusal) {
                response = try answered(asked)
                asked.route.call == .entries ? metrics.keyAppends.add() : metrics.keyLookups.add()
            } catch {
                response = error.response
                if let failure = error.failure { log.error("keylog.failed", ["error": .text(failure)]) }
                if response.status == 429 { metrics.limitHits.add(1, .keyLog) }
            }
            return Answered(connection: asked.connection, response: response.adding(asked.fields))
        }

        private func answered(_ asked: Asked) throws(KeyLogService.Refusal) -> HTTPResponse {
            if service == nil {
                do {
                    service = KeyLogService(
                        store: try KeyLogStore(path: access.path, settings: access.settings), logs: access.logs,
                        key: access.key,
                        partners: try partners.map {
                            PartnerService(directory: try $0(), rules: rules, random: RandomBytes.make)
                        }, witnesses: access.witnesses)
                } catch {
                    throw KeyLogService.Refusal(KeyLogAnswer.unavailable, failure: "\(error)")
                }
            }
            let question = KeyLogService.Asked(
                request: asked.request, app: asked.route.app, address: asked.address, now: now())
            guard let response = try service?.answer(question, to: asked.route.call) else {
                throw KeyLogService.Refusal(KeyLogAnswer.unavailable)
            }
            return response
        }

        /// Stores the heads that were given out, and reports sizes. A failure is tried again with the next one.
        func keepHeads() {
            do throws(DirectoryError) { try service?.keepHeads() } catch {
                log.error("keylog.head_not_kept", ["error": .text(error.description)])
            }
            metrics.keyEntries.set(access.logs.entryCount)
        }
    }
}

/// What a server needs to keep key logs.
public struct KeyLogAccess: Sendable {
    let path: String
    let settings: StoreSettings
    let key: LogKey
    let logs: KeyLogs
    /// Keys of witnesses whose confirmations are accepted.
    let witnesses: [Ed25519.VerifyingKey]

    /// - Parameters:
    ///   - path: the store's file.
    ///   - witnesses: keys of witnesses whose confirmations are accepted and given to devices.
    ///   - logs: the logs that the writers of accounts and bundles follow, too.
    public init(
        path: String, key: LogKey, logs: KeyLogs, settings: StoreSettings = .init(),
        witnesses: [Ed25519.VerifyingKey] = []
    ) {
        (self.path, self.key, self.logs, self.settings) = (path, key, logs, settings)
        self.witnesses = witnesses
    }
}
