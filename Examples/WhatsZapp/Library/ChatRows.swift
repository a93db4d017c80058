import ThicketTreesystem

/// Where the app's own values are read and written: inside of a transaction of the tree, whether another device's change
/// arrives (`TreeTransaction`) or this one makes a change (`TreeEditor`). Both are written in the same way, so that the
/// list of conversations never disagrees with the tree, not even after a crash.
protocol ChatRows {
    func value(_ collection: String, _ key: String) throws(TreeError) -> [UInt8]?
    func page(
        of collection: String, after last: AppValue?, isDescending: Bool, limit: Int
    ) throws(TreeError) -> [AppValue]
    mutating func set(_ value: [UInt8]?, _ collection: String, _ key: String, order: Int64) throws(TreeError)
}

extension TreeTransaction: ChatRows {}
extension TreeEditor: ChatRows {}
