/// A tenant: one user of one app, as the unit of fairness, throttling and quotas. All connections of a user share it.
/// The hub gives a new number to each user that it does not remember; numbers are not stored.
public struct TenantID: Hashable, Sendable, ExpressibleByIntegerLiteral, CustomStringConvertible {
    /// The number; 0 for unauthenticated connections.
    public let rawValue: UInt32

    /// All connections that have not named a user yet share this one.
    public static let unauthenticated: TenantID = 0

    /// The tenant of that number.
    public init(_ rawValue: UInt32) { self.rawValue = rawValue }
    /// The tenant of that number.
    public init(integerLiteral value: UInt32) { rawValue = value }

    /// The one after it; `unauthenticated` is left out.
    package var next: TenantID { TenantID(rawValue == .max ? 1 : rawValue + 1) }

    /// The number in decimal.
    public var description: String { String(rawValue) }
}
