import ThicketProtocol

/// What administrators have chosen for the buckets of one name, of all users of an app: objects of a bucket of its own, which
/// is like any other but that users do not get at it. The object's key is the name of the buckets (public protocol, "Bucket
/// Options").
enum BucketOptions {
    /// The bucket, and who owns what belongs to an app and to none of its users.
    static let name: String = "__options__"

    /// Most versions that an option may ask for.
    static let versionsMax: Int64 = 1_000_000

    static func isBucket(_ bucket: BucketName) -> Bool { bucket.text.utf8.elementsEqual(name.utf8) }

    /// nil only if these were no names.
    static func bucket(of app: AppID) -> BucketID? {
        guard let owner: UserID = try? UserID(name), let bucket: BucketName = try? BucketName(name) else { return nil }
        return BucketID(app: app, user: owner, name: bucket)
    }

    /// The settings for a bucket: the server's, with `version_max` and `version10_max` of its options in their place. What is no
    /// whole number in bounds counts for nothing.
    static func settings(
        _ settings: RetentionSettings, for bucket: BucketID, _ reader: some StoreReader
    ) throws(StoreError) -> RetentionSettings {
        guard let place: BucketID = self.bucket(of: bucket.app), let key: EntityKey = try? EntityKey(bucket.name.text),
            let options: BucketRecord = try reader.bucket(place),
            let body: [UInt8] = try reader.head(of: key, in: options.row)?.body,
            let root: JSONNode = try? JSONDocument(parsing: body[...]).root
        else { return settings }
        var own: RetentionSettings = settings
        if let count: Int64 = root["version_max"]?.int64, (1...versionsMax).contains(count) {
            own.versionsNewest = count
        }
        if let count: Int64 = root["version10_max"]?.int64, (0...versionsMax).contains(count) {
            own.versionsSparse = count
        }
        return own
    }
}
