/// Users that did something costly recently. A user that does so again within the memory time is throttled.
///
/// The first time is not punished: when a hypervisor or an interrupt stops the thread, the lost time looks like
/// processor time, and the user of a small change would be throttled for more than a second. The time that a user
/// really uses is counted in its `CPUBudget`. Pure: times are nanoseconds of a monotonic clock.
package struct PenaltyBox {
    /// Nanoseconds after the end of a throttle for which costly work is remembered.
    package static let memory: Int64 = 60_000_000_000
    /// Users that are remembered. Above this number all are forgotten at once, in favour of the users.
    package static let countMax = 4_096

    /// The time until which each user is remembered.
    private var remembered = [TenantID: Int64]()

    package init() {}

    /// Records costly work of a user.
    ///
    /// - Parameters:
    ///   - cost: nanoseconds.
    ///   - factor: the throttle lasts this multiple of the cost; 0 disables throttling.
    /// - Returns: the time until which the user is throttled; nil when it may continue.
    package mutating func throttle(of user: TenantID, cost: Int64, factor: Int, now: Int64) -> Int64? {
        let (product, isOver) = cost.multipliedReportingOverflow(by: Int64(factor))
        let throttle = isOver ? Self.memory : product
        let isAgain = remembered[user].map { $0 > now } ?? false
        if remembered[user] == nil, remembered.count >= Self.countMax { remembered.removeAll(keepingCapacity: true) }
        remembered[user] = now + (isAgain ? throttle : 0) + Self.memory
        return isAgain && throttle > 0 ? now + throttle : nil
    }
}
