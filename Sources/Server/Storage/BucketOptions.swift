import ThicketProtocol

/// Options that administrators set for all buckets of one name, for all users of an app. They are the objects of a
/// reserved bucket that works like any other bucket, except that users cannot access it. The key of such an object is
/// the name of the buckets (public protocol, "Bucket Options"). The server refuses an option that it does not
/// implement, so that no option is accepted without effect (decision 0034).
enum BucketOptions {
    /// Name of the reserved bucket, and of the pseudo user that owns the data of an app as a whole.
    static let name = "__options__"

    /// Upper bound of `version_max` and `version10_max`.
    static let versionsMax: Int64 = 1_000_000
    /// Upper bound of `capacity`. The server counts a bucket's objects when it loads the bucket into memory.
    static let capacityMax: Int64 = 100_000

    private static let capacity = "capacity"
    private static let versionMax = "version_max"
    private static let version10Max = "version10_max"

    static func isBucket(_ bucket: BucketName) -> Bool { bucket.text.utf8.elementsEqual(name.utf8) }

    /// The options bucket of `app`. nil only if the reserved names were not valid names.
    static func bucket(of app: AppID) -> BucketID? {
        guard let owner = try? UserID(name), let bucket = try? BucketName(name) else { return nil }
        return BucketID(app: app, user: owner, name: bucket)
    }

    /// The integers that `option` accepts; nil for an unknown option.
    private static func range(of option: String) -> ClosedRange<Int64>? {
        switch option {
        case _ where option.utf8.elementsEqual(capacity.utf8): 1...capacityMax
        case _ where option.utf8.elementsEqual(versionMax.utf8): 1...versionsMax
        case _ where option.utf8.elementsEqual(version10Max.utf8): 0...versionsMax
        default: nil
        }
    }

    // MARK: Setting

    /// Checks whether `options` may be set for the buckets named by `key`.
    /// - Throws: 400 for settings without effect: a key that is not a valid bucket name, an option that the server does
    ///   not implement, a number out of bounds. `null` means that the option is not set.
    static func check(_ options: JSONObject, of key: EntityKey) throws(ChangeRejection) {
        guard let bucket = try? BucketName(key.text) else {
            throw ChangeRejection(.invalidRequest, "options for an invalid bucket name")
        }
        for (option, value) in options.pairs {
            guard let range = range(of: option) else {
                throw ChangeRejection(.invalidRequest, "an option that this server does not implement")
            }
            if value == .null { continue }
            guard let number = value.intValue, range.contains(number) else {
                throw ChangeRejection(.invalidRequest, "an option that is not an integer from \(range)")
            }
            // A capacity of the options bucket would evict the options of other buckets silently.
            if isBucket(bucket), option.utf8.elementsEqual(capacity.utf8) {
                throw ChangeRejection(.invalidRequest, "a capacity for the options bucket")
            }
        }
    }

    /// The response to options that cannot be set.
    static let refusal = RESTAnswer.invalid(
        "invalid_option", "These options cannot be set.",
        "The key is a bucket's name; options are capacity (1 to \(capacityMax)), version_max (1 to \(versionsMax)) and "
            + "version10_max (0 to \(versionsMax)), or null; replace=1 removes the existing others.")

    // MARK: Following

    /// Maximum number of objects in a bucket with these options; nil: unlimited.
    static func capacity(_ options: JSONObject) -> Int? {
        guard let count = options[capacity]?.intValue, (1...capacityMax).contains(count) else { return nil }
        return Int(count)
    }

    /// The retention settings of a bucket: the server's settings, with `version_max` and `version10_max` replaced by
    /// the bucket's options. A value that is not an integer within its bounds is ignored.
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
