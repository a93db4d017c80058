/// The devices with trees of a world, and what is known of them.
final class TreeParty {
    var devices = [TreeDevice]()
    /// By the account's number.
    var records: [TreeRecords]

    init(accounts: Int) { records = (0..<accounts).map { _ in TreeRecords() } }
}
