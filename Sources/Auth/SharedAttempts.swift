import Synchronization

/// An `AttemptMeter` for services that work on several threads and count together, so that nobody has a bound twice by
/// spreading attempts over them. A proof that is under way on each thread at once is counted when it has failed: so
/// many more than the bound may be looked at.
public final class SharedMeter: Sendable {
    private let meter: Mutex<AttemptMeter>

    /// - Parameter perMinute: tries a minute that one name has.
    public init(perMinute: Int) { meter = Mutex(AttemptMeter(perMinute: perMinute)) }

    /// Tries a minute that one name has.
    public var perMinute: Int {
        get { meter.withLock { $0.perMinute } }
        set { meter.withLock { $0.perMinute = newValue } }
    }

    /// - Parameter now: seconds, from any clock that does not go back.
    /// - Returns: nil when the name may try; else the whole seconds to wait.
    public func wait(_ name: String, now: Double) -> Int? { meter.withLock { $0.wait(name, now: now) } }

    /// Counts a try.
    public func add(_ name: String, now: Double) { meter.withLock { $0.add(name, now: now) } }

    /// Counts a try if the name may make one.
    /// - Returns: nil when it was counted; else the whole seconds to wait.
    public func take(_ name: String, now: Double) -> Int? {
        meter.withLock { meter in
            if let seconds = meter.wait(name, now: now) { return seconds }
            meter.add(name, now: now)
            return nil
        }
    }
}

/// What the services of partners' requests count, whichever thread they work on.
public final class PartnerAttempts: Sendable {
    /// Tokens that are not good, by API key or app, and address.
    let failures = SharedMeter(perMinute: PartnerService.failuresPerMinute)
    /// New users, by partner.
    let registrations: SharedMeter
    /// Failed logins, by address.
    let addresses: SharedMeter
    /// Wrong passwords in a row, by partner and name.
    private let names = Mutex<LoginGuard>(LoginGuard())

    /// - Parameters:
    ///   - registrationsPerMinute: of one partner.
    ///   - addresses: failed logins by address, counted together with those of others; nil for a count of their own.
    public init(
        registrationsPerMinute: Int = PartnerService.registrationsPerMinute, addresses: SharedMeter? = nil
    ) {
        registrations = SharedMeter(perMinute: registrationsPerMinute)
        self.addresses = addresses ?? SharedMeter(perMinute: PartnerService.failedLoginsPerMinute)
    }

    /// - Returns: nil when the name may be tried; else the whole seconds to wait.
    func wait(name: String, now: Double) -> Int? { names.withLock { $0.wait(name, now: now) } }

    func failed(name: String, now: Double) { names.withLock { $0.failed(name, now: now) } }

    func succeeded(name: String) { names.withLock { $0.succeeded(name) } }
}
