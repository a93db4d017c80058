import Synchronization

/// An `AttemptMeter` shared by services on several threads, so that spreading attempts over them does not multiply
/// a bound. A proof in progress on each thread is counted only when it has failed: the bound may be exceeded by
/// that many.
public final class SharedMeter: Sendable {
    private let meter: Mutex<AttemptMeter>

    /// - Parameter perMinute: attempts a minute for one name.
    public init(perMinute: Int) { meter = Mutex(AttemptMeter(perMinute: perMinute)) }

    /// Attempts a minute for one name.
    public var perMinute: Int {
        get { meter.withLock { $0.perMinute } }
        set { meter.withLock { $0.perMinute = newValue } }
    }

    /// Whether the name may make an attempt.
    /// - Parameter now: seconds, from any monotonic clock.
    /// - Returns: nil when the name may try; otherwise the whole seconds to wait.
    public func wait(_ name: String, now: Double) -> Int? { meter.withLock { $0.wait(name, now: now) } }

    /// Counts an attempt.
    public func add(_ name: String, now: Double) { meter.withLock { $0.add(name, now: now) } }

    /// Counts an attempt if the name may make one.
    /// - Returns: nil when it was counted; otherwise the whole seconds to wait.
    public func admit(_ name: String, now: Double) -> Int? {
        meter.withLock { meter in
            if let seconds = meter.wait(name, now: now) { return seconds }
            meter.add(name, now: now)
            return nil
        }
    }
}

/// The counts of attempts of partner requests, on whichever thread they are answered.
public final class PartnerAttempts: Sendable {
    /// Bad tokens, by API key or app, and address.
    let failures = SharedMeter(perMinute: PartnerService.failuresPerMinute)
    /// New users, by partner.
    let registrations: SharedMeter
    /// Failed logins, by address.
    let addresses: SharedMeter
    /// Wrong passwords in a row, by partner and name.
    private let names = Mutex<LoginGuard>(LoginGuard())

    /// - Parameters:
    ///   - registrationsPerMinute: of one partner.
    ///   - addresses: failed logins by address, counted together with those of others; nil for a separate count.
    public init(
        registrationsPerMinute: Int = PartnerService.registrationsPerMinute, addresses: SharedMeter? = nil
    ) {
        registrations = SharedMeter(perMinute: registrationsPerMinute)
        self.addresses = addresses ?? SharedMeter(perMinute: PartnerService.failedLoginsPerMinute)
    }

    /// - Returns: nil when the name may be tried; otherwise the whole seconds to wait.
    func wait(name: String, now: Double) -> Int? { names.withLock { $0.wait(name, now: now) } }

    func failed(name: String, now: Double) { names.withLock { $0.failed(name, now: now) } }

    func succeeded(name: String) { names.withLock { $0.succeeded(name) } }
}
