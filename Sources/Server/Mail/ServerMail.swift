import Synchronization
import ThicketAuth

/// The thread that hands the messages of the spool over to a mail server. Nobody waits for it: a message is safe as
/// soon as it lies in its folder, and leaves that when the server has taken it.
public final class ServerMail: Sendable {
    /// Messages handed over on one connection; then another is begun.
    static let perConnectionMax = 100
    /// Seconds between two looks into the folder without a call.
    private static let lookSeconds: Double = 60

    private let monitor = Monitor()
    private let state = State()
    private let thread = Mutex<OwnThread?>(nil)

    /// Touched only inside `monitor`, but for `isOver`.
    private final class State: @unchecked Sendable {
        var hasNews = true
        let isOver = Atomic<Bool>(false)
    }

    /// Starts the thread.
    /// - Parameters:
    ///   - spool: its folder belongs to this server alone.
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

    /// Something was put into the folder. Never waits.
    func wake() {
        monitor.locked {
            state.hasNews = true
            monitor.wakeOne()
        }
    }

    /// Ends the thread; a message under way stays in the folder.
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

    /// The body of the thread.
    private final class Runner: @unchecked Sendable {
        // Touched on the thread only, but for its making before the thread starts.
        private let spool: MailSpool
        private let sender: SMTPSender
        private let metrics: Metrics
        private let log: Log
        private let now: @Sendable () -> Int64
        private let isStopping: @Sendable () -> Bool
        private var courier = MailCourier()
        /// A folder that could not be read is told of once.
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

        /// Hands over what can be handed over now.
        /// - Returns: seconds until there is something to do again; nil: when something new comes.
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
                outcome = .init(result: .unreadable, reason: "the file is no message of this server")
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
