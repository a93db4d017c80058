import ThicketScheduling

extension ShardRequest {
    /// The tenant of work that belongs to no user.
    static let internalWork: TenantID = 0

    /// The tenant whose turn the request uses.
    var tenant: TenantID {
        switch self {
        case .change(let submitted): submitted.reservation.tenant
        case .chooseMode(let request): request.tenant
        case .decided(let result): result.submitted.reservation.tenant
        case .forget: Self.internalWork
        }
    }
}
