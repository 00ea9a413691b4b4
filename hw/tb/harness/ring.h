// A queue that allocates only when it is longer than ever before.
#pragma once

#include <cstddef>
#include <vector>

template <typename Item>
class Ring {
public:
    Ring() : items_(16) {}

    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    void clear() { head_ = size_ = 0; }
    Item& front() { return items_[head_]; }
    Item& operator[](std::size_t i) { return items_[(head_ + i) & (items_.size() - 1)]; }

    void push(const Item& item) {
        if (size_ == items_.size()) grow();
        items_[(head_ + size_++) & (items_.size() - 1)] = item;
    }

    void pop() {
        head_ = (head_ + 1) & (items_.size() - 1);
        --size_;
    }

private:
    std::vector<Item> items_;  // a power of two of places
    std::size_t head_ = 0, size_ = 0;

    void grow() {
        std::vector<Item> larger(2 * items_.size());
        for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
        items_.swap(larger);
        head_ = 0;
    }
};
