import Synchronization
import ThicketAuth
import ThicketPlatform

/// The thread that delivers the spool's messages to a mail server. No request waits for it: a message is safe once it
/// is in its folder, and leaves the folder when the mail server has accepted it.
public final class ServerMail: Sendable {
    /// Messages delivered on one connection; then another is opened.
    static let perConnectionMax = 100
    /// Seconds between two scans of the folder without a `wake`.
    private static let lookSeconds: Double = 60

    private let monitor = Monitor()
    private let state = State()
    private let thread = Mutex<OwnThread?>(nil)

    /// Accessed only inside `monitor`, except `isOver`.
    private final class State: @unchecked Sendable {
        var hasNews = true
        let isOver = Atomic<Bool>(false)
    }

    /// Starts the thread.
    /// - Parameters:
    ///   - spool: only this server uses its folder.
    ///   - now: milliseconds since 1970.
    init(
        _ settings: SMTPSettings, spool: MailSpool, metrics: Metrics, log: Log, now: @escaping @Sendable () -> Int64
    ) {
        let state = self.state
        let runner = Runner(
            settings, spool: spool, metrics: metrics, log: log, now: now
        ) { state.isOver.load(ordering: .relaxed) }
        let made = OwnThread("mail") { [unowned self] in run(runner) }
        thread.withLock { $0 = made }
    }

    /// Reports that a message was put into the folder. Never blocks.
    func wake() {
        monitor.locked {
            state.hasNews = true
            monitor.wakeOne()
        }
    }

    /// Ends the thread; a message in progress stays in the folder.
    func finish() {
        state.isOver.store(true, ordering: .relaxed)
        wake()
        thread.withLock { thread in
            thread?.join()
            thread = nil
        }
    }

    private func run(_ runner: Runner) {
        while !state.isOver.load(ordering: .relaxed) {
            let seconds = min(runner.turn() ?? Self.lookSeconds, Self.lookSeconds)
            let deadline = SystemClock.monotonic() + Int64(max(0, seconds) * 1e9)
            monitor.locked {
                while !state.hasNews, SystemClock.monotonic() < deadline { monitor.wait(until: deadline) }
                state.hasNews = false
            }
        }
    }

    /// Runs on the thread.
    private final class Runner: @unchecked Sendable {
        // Accessed on the thread only, except for its creation before the thread starts.
        private let spool: MailSpool
        private let sender: SMTPSender
        private let metrics: Metrics
        private let log: Log
        private let now: @Sendable () -> Int64
        private let isStopping: @Sendable () -> Bool
        private var courier = MailCourier()
        /// Whether an unreadable folder was already logged.
        private var isBlind = false

        init(
            _ settings: SMTPSettings, spool: MailSpool, metrics: Metrics, log: Log,
            now: @escaping @Sendable () -> Int64, isStopping: @escaping @Sendable () -> Bool
        ) {
            (self.spool, self.metrics, self.log, self.now) = (spool, metrics, log, now)
            self.isStopping = isStopping
            sender = SMTPSender(settings, isStopping: isStopping)
            spool.dropPartial()
        }

        /// Delivers all messages that are due.
        /// - Returns: seconds until the next message is due; nil: when a new message arrives.
        func turn() -> Double? {
            defer { sender.hangUp() }
            do throws(DirectoryError) {
                courier.found(try spool.names())
                isBlind = false
            } catch {
                if !isBlind { log.error("mail.unreadable", ["error": .text(error.description)]) }
                isBlind = true
                return nil
            }
            metrics.mailsWaiting.set(courier.count)
            for _ in 0..<ServerMail.perConnectionMax where !isStopping() {
                switch courier.next(now: seconds) {
                case .wait(let until): return until.map { $0 - seconds }
                case .send(let name): send(name)
                }
            }
            return 0
        }

        private var seconds: Double { Double(now()) / 1_000 }

        private func send(_ name: String) {
            let outcome: SMTPSender.Outcome
            if let message = spool.read(name) {
                outcome = sender.send(message.bytes, to: message.to)
            } else {
                outcome = .init(result: .unreadable, reason: "the file is not a message of this server")
            }
            guard !isStopping() || outcome.result == .taken else { return }
            metrics.mailDeliveries.add(1, .init(outcome.result))
            let fate = courier.tried(name, outcome.result, now: seconds)
            switch fate {
            case .remove: spool.remove(name)
            case .setAside:
                spool.setAside(name)
                log.error("mail.set_aside", ["mail": .text(name), "reason": .text(outcome.reason)])
            case .keep(let wait):
                log.warning(
                    "mail.not_sent",
                    ["mail": .text(name), "reason": .text(outcome.reason), "retry_seconds": .int(Int(wait))])
            }
            metrics.mailsWaiting.set(courier.count)
        }
    }
}

extension Metrics.MailDelivery {
    init(_ result: MailCourier.Result) {
        self =
            switch result {
            case .taken: .taken
            case .refused: .refused
            case .deferred: .deferred
            case .unreachable: .unreachable
            case .unreadable: .unreadable
            }
    }
}
