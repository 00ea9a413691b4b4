// Software at an AXI4-Lite port: one access at a time.
#pragma once

#include <cstdint>

#include "top_ports.h"
#include "violation.h"

class RegisterMaster {
public:
    RegisterMaster(AxiPorts ports, unsigned unit) : ports_(ports), unit_(unit) {
        ports_.awvalid = ports_.wvalid = ports_.arvalid = 0;
        ports_.awprot = ports_.arprot = 0;
        ports_.bready = 1;
        ports_.rready = 1;
    }

    bool busy() const { return writing_ || reading_; }
    unsigned response() const { return response_; }
    std::uint32_t value() const { return value_; }

    void write(std::uint32_t address, std::uint32_t value, unsigned strobes) {
        ports_.awaddr = address;
        ports_.wdata = value;
        ports_.wstrb = strobes;
        ports_.awvalid = ports_.wvalid = 1;
        writing_ = true;
    }

    void read(std::uint32_t address) {
        ports_.araddr = address;
        ports_.arvalid = 1;
        reading_ = true;
    }

    void drive() {
        if (address_taken_) ports_.awvalid = 0;
        if (data_taken_) ports_.wvalid = 0;
        if (read_taken_) ports_.arvalid = 0;
        address_taken_ = data_taken_ = read_taken_ = false;
    }

    void sample() {
        if (ports_.bvalid) {
            if (!writing_ || ports_.awvalid || ports_.wvalid) violation("unit %u: BVALID without a write", unit_);
            response_ = ports_.bresp;
            writing_ = false;
        }
        if (ports_.rvalid) {
            if (!reading_ || ports_.arvalid) violation("unit %u: RVALID without a read", unit_);
            response_ = ports_.rresp;
            value_ = ports_.rdata;
            reading_ = false;
        }
        address_taken_ = ports_.awvalid && ports_.awready;
        data_taken_ = ports_.wvalid && ports_.wready;
        read_taken_ = ports_.arvalid && ports_.arready;
    }

private:
    AxiPorts ports_;
    unsigned unit_;
    bool writing_ = false, reading_ = false;
    bool address_taken_ = false, data_taken_ = false, read_taken_ = false;
    unsigned response_ = 0;
    std::uint32_t value_ = 0;
};
