import ThicketProtocol

/// What administrators have chosen for the buckets of one name, of all users of an app: objects of a bucket of its own,
/// which is like any other but that users do not get at it. The object's key is the name of the buckets (public
/// protocol, "Bucket Options"). What this server does not follow it does not take, so that no option is set in vain
/// (decision 0034).
enum BucketOptions {
    /// The bucket, and who owns what belongs to an app and to none of its users.
    static let name = "__options__"

    /// Most versions that an option may ask for.
    static let versionsMax: Int64 = 1_000_000
    /// Most objects that `capacity` may allow: they are counted when the bucket comes into memory.
    static let capacityMax: Int64 = 100_000

    private static let capacity = "capacity"
    private static let versionMax = "version_max"
    private static let version10Max = "version10_max"

    static func isBucket(_ bucket: BucketName) -> Bool { bucket.text.utf8.elementsEqual(name.utf8) }

    /// nil only if these were no names.
    static func bucket(of app: AppID) -> BucketID? {
        guard let owner = try? UserID(name), let bucket = try? BucketName(name) else { return nil }
        return BucketID(app: app, user: owner, name: bucket)
    }

    /// The whole numbers that an option takes; nil for what is no option here.
    private static func range(of option: String) -> ClosedRange<Int64>? {
        switch option {
        case _ where option.utf8.elementsEqual(capacity.utf8): 1...capacityMax
        case _ where option.utf8.elementsEqual(versionMax.utf8): 1...versionsMax
        case _ where option.utf8.elementsEqual(version10Max.utf8): 0...versionsMax
        default: nil
        }
    }

    // MARK: Setting

    /// Whether these may be the options of buckets of that name.
    /// - Throws: 400 for what would do nothing: a key that no bucket can have, an option that is not followed, a number
    ///   out of bounds. `null` is an option that is not set.
    static func check(_ options: JSONObject, of key: EntityKey) throws(ChangeRejection) {
        guard let bucket = try? BucketName(key.text) else {
            throw ChangeRejection(.invalidRequest, "options of what is no bucket's name")
        }
        for (option, value) in options.pairs {
            guard let range = range(of: option) else {
                throw ChangeRejection(.invalidRequest, "an option that is not followed here")
            }
            if value == .null { continue }
            guard let number = value.intValue, range.contains(number) else {
                throw ChangeRejection(.invalidRequest, "an option that is no whole number from \(range)")
            }
            // Options that push out others would be lost without a word.
            if isBucket(bucket), option.utf8.elementsEqual(capacity.utf8) {
                throw ChangeRejection(.invalidRequest, "a capacity of the options themselves")
            }
        }
    }

    /// The answer to options that cannot be set.
    static let refusal = RESTAnswer.invalid(
        "invalid_option", "These options cannot be set.",
        "The key is a bucket's name; options are capacity (1 to \(capacityMax)), version_max (1 to \(versionsMax)) and "
            + "version10_max (0 to \(versionsMax)), or null; replace=1 leaves out others that stand there.")

    // MARK: Following

    /// Objects that a bucket with these options may have; nil: as many as come.
    static func capacity(_ options: JSONObject) -> Int? {
        guard let count = options[capacity]?.intValue, (1...capacityMax).contains(count) else { return nil }
        return Int(count)
    }

    /// The settings for a bucket: the server's, with `version_max` and `version10_max` of its options in their place.
    /// What is no whole number in bounds counts for nothing.
    static func settings(
        _ settings: RetentionSettings, for bucket: BucketID, _ reader: some StoreReader
    ) throws(StoreError) -> RetentionSettings {
        guard let place = self.bucket(of: bucket.app), let key = try? EntityKey(bucket.name.text),
            let options = try reader.bucket(place),
            let body = try reader.head(of: key, in: options.row)?.body,
            let root = try? JSONDocument(parsing: body[...]).root
        else { return settings }
        var own = settings
        if let count = root[versionMax]?.int64, (1...versionsMax).contains(count) {
            own.versionsNewest = count
        }
        if let count = root[version10Max]?.int64, (0...versionsMax).contains(count) {
            own.versionsSparse = count
        }
        return own
    }
}
